#include "graph/operator_types.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>

namespace mk {
namespace {

// ONNX's names of element types in its schemas that differ from ours.
DataType element_named(std::string_view name) {
  if (name == "float") return DataType::float32;
  if (name == "double") return DataType::float64;
  if (name.size() > 6 && name[6] == 'e' && name.starts_with("float")) {
    return element_named(std::string(name.substr(0, 6)) + '_' + std::string(name.substr(6)));
  }
  return data_type_named(name).value_or(DataType::undefined);
}

void add(std::string_view type, TypeSet& set) {
  constexpr std::string_view tensor = "tensor(";
  if (type.starts_with(tensor) && type.ends_with(")")) {
    type.remove_prefix(tensor.size());
    type.remove_suffix(1);
    set.tensors |= std::uint64_t{1} << static_cast<int>(element_named(type));
  } else if (!type.starts_with("sparse_tensor(")) {
    set.containers = true;
  }
}

std::vector<OperatorTypes::Formal> formals_of(const std::vector<onnx::OpSchema::FormalParameter>& parameters,
                                              std::map<std::string, int>& named, bool& variadic) {
  std::vector<OperatorTypes::Formal> formals;
  for (const auto& parameter : parameters) {
    OperatorTypes::Formal& formal = formals.emplace_back();
    for (const std::string* type : parameter.GetTypes()) add(*type, formal.types);
    const bool is_variadic = parameter.GetOption() == onnx::OpSchema::Variadic;
    variadic |= is_variadic;
    const std::string& name = parameter.GetTypeStr();
    if (name.find('(') != std::string::npos || (is_variadic && !parameter.GetIsHomogeneous())) continue;
    formal.parameter = named.emplace(name, static_cast<int>(named.size())).first->second;
  }
  return formals;
}

}  // namespace

DataType TypeSet::only() const {
  return !containers && std::has_single_bit(tensors) ? static_cast<DataType>(std::countr_zero(tensors))
                                                     : DataType::undefined;
}

struct OperatorTypesCache::Entries {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::unique_ptr<OperatorTypes>, std::less<>> found;
};

OperatorTypesCache::OperatorTypesCache() : entries_(std::make_unique<Entries>()) {}
OperatorTypesCache::~OperatorTypesCache() = default;

const OperatorTypes* OperatorTypesCache::find(std::string_view domain, std::string_view op_type, std::int64_t version) {
  if (domain == "ai.onnx") domain = {};
  const auto known = entries_->found.find(std::tie(domain, op_type, version));
  if (known != entries_->found.end()) return known->second.get();
  auto& entry = entries_->found[{std::string(domain), std::string(op_type), version}];
  const auto newest = static_cast<int>(std::clamp<std::int64_t>(version, 0, 1 << 20));
  const auto* schema = onnx::OpSchemaRegistry::Schema(std::string(op_type), newest, std::string(domain));
  if (!schema) return nullptr;
  entry = std::make_unique<OperatorTypes>();
  std::map<std::string, int> named;
  entry->inputs = formals_of(schema->inputs(), named, entry->variadic_inputs);
  entry->outputs = formals_of(schema->outputs(), named, entry->variadic_outputs);
  entry->parameters = static_cast<int>(named.size());
  return entry.get();
}

}  // namespace mk
