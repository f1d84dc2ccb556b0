#include "graph/type.h"

namespace mk {

Shape static_shape(const std::vector<std::int64_t>& dims) {
  Shape shape;
  shape.reserve(dims.size());
  for (const std::int64_t dim : dims) shape.push_back(Dim::known(dim));
  return shape;
}

std::string to_string(const Dim& dim) {
  if (dim.is_known()) return std::to_string(dim.value);
  return dim.symbol.empty() ? "?" : dim.symbol;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_string(shape[i]);
  }
  return text + "]";
}

Type Type::tensor(DataType element, std::optional<Shape> shape) {
  Type type;
  type.kind = Kind::tensor;
  type.element = element;
  type.shape = std::move(shape);
  return type;
}

bool Type::operator==(const Type& other) const {
  if (kind != other.kind || element != other.element || shape != other.shape) return false;
  if (denotation != other.denotation || raw != other.raw) return false;
  if ((inner == nullptr) != (other.inner == nullptr)) return false;
  return inner == other.inner || *inner == *other.inner;
}

std::string to_string(const Type& type) {
  const auto inner = [&] { return type.inner ? to_string(*type.inner) : std::string("?"); };
  const auto tensor = [&] {
    return std::string(name_of(type.element)) + (type.shape ? to_string(*type.shape) : std::string("[...]"));
  };
  switch (type.kind) {
    case Type::Kind::none:
      return "?";
    case Type::Kind::tensor:
      return tensor();
    case Type::Kind::sparse_tensor:
      return "sparse(" + tensor() + ")";
    case Type::Kind::sequence:
      return "sequence(" + inner() + ")";
    case Type::Kind::optional:
      return "optional(" + inner() + ")";
    case Type::Kind::map:
      return "map(" + std::string(name_of(type.element)) + ", " + inner() + ")";
    case Type::Kind::opaque:
      return "opaque";
  }
  return "?";
}

}  // namespace mk
