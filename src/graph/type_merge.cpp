#include "graph/type_merge.h"

#include <functional>
#include <utility>

#include "graph/symbolic_int.h"

namespace mk {
namespace {

bool is_promise(const Dim& dim) { return dim.is_symbolic() && !SymbolNames::is_generated(dim.symbol); }

// Calls `change(Shape&)` for the shape of a type and of those inside it.
void for_each_shape(Type& type, const std::function<void(Shape&)>& change) {
  if (type.shape) change(*type.shape);
  if (!type.inner) return;
  Type inner = *type.inner;
  for_each_shape(inner, change);
  type.inner = std::make_shared<const Type>(std::move(inner));
}

struct Merger {
  bool keep_symbols;
  MergedType result;

  Dim merge(const Dim& declared, const Dim& inferred) {
    Dim dim = inferred;
    if (dim.denotation.empty()) dim.denotation = declared.denotation;
    if (inferred.is_known()) {
      if (declared.is_known() && declared.value != inferred.value) contradict();
      return dim;
    }
    if (is_promise(inferred)) {
      if (declared.is_known()) contradict();
      if (is_promise(declared) && keep_symbols) dim.symbol = declared.symbol;
      return dim;
    }
    if (!declared.is_known() && !is_promise(declared)) return dim;
    result.from_declaration = true;
    dim.value = declared.value;
    dim.symbol = declared.symbol;
    return dim;
  }

  Type merge(const Type& declared, const Type& inferred) {
    if (inferred.kind == Type::Kind::none) {
      result.from_declaration = declared.kind != Type::Kind::none;
      return declared;
    }
    if (declared.kind == Type::Kind::none) return inferred;
    if (declared.kind != inferred.kind) {
      contradict();
      return inferred;
    }
    Type type = inferred;
    if (type.denotation.empty()) type.denotation = declared.denotation;
    if (type.raw.empty()) type.raw = declared.raw;
    if (inferred.element == DataType::undefined) {
      type.element = declared.element;
      result.from_declaration |= declared.element != DataType::undefined;
    } else if (declared.element != DataType::undefined && declared.element != inferred.element) {
      contradict();
    }
    if (declared.inner && inferred.inner) {
      type.inner = std::make_shared<const Type>(merge(*declared.inner, *inferred.inner));
    } else if (declared.inner) {
      type.inner = declared.inner;
    }
    if (!declared.shape) return type;
    if (!inferred.shape) {
      type.shape = declared.shape;
      result.from_declaration = true;
      return type;
    }
    if (declared.shape->size() != inferred.shape->size()) {
      contradict();
      return type;
    }
    for (std::size_t i = 0; i < type.shape->size(); ++i) {
      (*type.shape)[i] = merge((*declared.shape)[i], (*inferred.shape)[i]);
    }
    return type;
  }

  bool contradicts = false;
  void contradict() { contradicts = true; }
};

}  // namespace

MergedType merge_types(const Type& declared, const Type& inferred, bool keep_symbols) {
  Merger merger{keep_symbols, {}};
  merger.result.type = merger.merge(declared, inferred);
  if (merger.contradicts) {
    merger.result.contradiction = "is declared as " + to_string(declared) + " but is " + to_string(inferred);
  }
  return std::move(merger.result);
}

void SymbolNames::reserve(const Type& type) {
  if (type.shape) {
    for (const Dim& dim : *type.shape) {
      if (dim.is_symbolic() && is_generated(dim.symbol)) taken_.insert(dim.symbol);
    }
  }
  if (type.inner) reserve(*type.inner);
}

std::string SymbolNames::next() {
  std::string name;
  do {
    name = std::string(prefix) + std::to_string(counter_++);
  } while (taken_.contains(name));
  return name;
}

void SymbolNames::name_dims(Type& type) {
  for_each_shape(type, [&](Shape& shape) {
    for (Dim& dim : shape) {
      if (dim.is_known() || (dim.is_symbolic() && dim.symbol != "?")) continue;
      dim.value = -1;
      dim.symbol = next();
    }
  });
}

Type without_generated_symbols(const Type& type) {
  Type result = type;
  for_each_shape(result, [](Shape& shape) {
    for (Dim& dim : shape) {
      if (dim.is_symbolic() && SymbolNames::is_generated(dim.symbol)) dim.symbol.clear();
    }
  });
  return result;
}

}  // namespace mk
