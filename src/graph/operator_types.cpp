#include "graph/operator_types.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>

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
  // By op type; the domains and versions in use of one are few.
  struct Entry {
    std::string domain;
    std::int64_t version = 0;
    std::unique_ptr<OperatorTypes> types;
  };
  std::unordered_map<std::string, std::vector<Entry>> by_type;
};

OperatorTypesCache::OperatorTypesCache() : entries_(std::make_unique<Entries>()) {}
OperatorTypesCache::~OperatorTypesCache() = default;

const OperatorTypes* OperatorTypesCache::find(std::string_view domain, std::string_view op_type, std::int64_t version) {
  if (domain == "ai.onnx") domain = {};
  std::vector<Entries::Entry>& entries = entries_->by_type[std::string(op_type)];
  for (const Entries::Entry& known : entries) {
    if (known.domain == domain && known.version == version) return known.types.get();
  }
  Entries::Entry& entry = entries.emplace_back(Entries::Entry{std::string(domain), version, nullptr});
  const auto newest = static_cast<int>(std::clamp<std::int64_t>(version, 0, 1 << 20));
  const auto* schema = onnx::OpSchemaRegistry::Schema(std::string(op_type), newest, entry.domain);
  if (!schema) return nullptr;
  entry.types = std::make_unique<OperatorTypes>();
  std::map<std::string, int> named;
  entry.types->inputs = formals_of(schema->inputs(), named, entry.types->variadic_inputs);
  entry.types->outputs = formals_of(schema->outputs(), named, entry.types->variadic_outputs);
  entry.types->parameters = static_cast<int>(named.size());
  return entry.types.get();
}

}  // namespace mk
