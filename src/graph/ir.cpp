#include "graph/ir.h"

#include <algorithm>

namespace mk {

const std::string* find(const Metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

void set(Metadata& metadata, std::string_view key, std::string value) {
  for (auto& [name, old] : metadata) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  metadata.emplace_back(key, std::move(value));
}

namespace {

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

}  // namespace

std::int64_t Model::opset(std::string_view wanted) const {
  for (const auto& [name, version] : opset_imports) {
    if (canonical_domain(name) == canonical_domain(wanted)) return version;
  }
  return 0;
}

void Model::set_opset(std::string_view wanted, std::int64_t version) {
  for (auto& [name, old] : opset_imports) {
    if (canonical_domain(name) == canonical_domain(wanted)) {
      old = version;
      return;
    }
  }
  opset_imports.emplace_back(wanted, version);
}

}  // namespace mk
