#include <algorithm>
#include <type_traits>

#include "graph/ir.h"

namespace mk {

Attribute::Attribute(std::string key, float content) : name(std::move(key)), kind(Kind::real), value(content) {}
Attribute::Attribute(std::string key, std::int64_t content)
    : name(std::move(key)), kind(Kind::integer), value(content) {}
Attribute::Attribute(std::string key, std::string content)
    : name(std::move(key)), kind(Kind::string), value(std::move(content)) {}
Attribute::Attribute(std::string key, Tensor content)
    : name(std::move(key)), kind(Kind::tensor), value(std::make_shared<const Tensor>(std::move(content))) {}
Attribute::Attribute(std::string key, std::vector<float> content)
    : name(std::move(key)), kind(Kind::reals), value(std::move(content)) {}
Attribute::Attribute(std::string key, std::vector<std::int64_t> content)
    : name(std::move(key)), kind(Kind::integers), value(std::move(content)) {}
Attribute::Attribute(std::string key, std::vector<std::string> content)
    : name(std::move(key)), kind(Kind::strings), value(std::move(content)) {}
Attribute::Attribute(std::string key, std::unique_ptr<Graph> content)
    : name(std::move(key)), kind(Kind::graph), value(std::move(content)) {}
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

Attribute Attribute::clone() const {
  Attribute copy;
  copy.name = name;
  copy.kind = kind;
  copy.reference = reference;
  copy.doc_string = doc_string;
  copy.raw = raw;
  std::visit(
      [&](const auto& payload) {
        using Alternative = std::decay_t<decltype(payload)>;
        if constexpr (std::is_same_v<Alternative, std::unique_ptr<Graph>>) {
          copy.value = payload ? mk::clone(*payload) : nullptr;
        } else if constexpr (std::is_same_v<Alternative, std::vector<std::unique_ptr<Graph>>>) {
          std::vector<std::unique_ptr<Graph>> graphs;
          graphs.reserve(payload.size());
          for (const auto& graph : payload) graphs.push_back(mk::clone(*graph));
          copy.value = std::move(graphs);
        } else {
          copy.value = payload;
        }
      },
      value);
  return copy;
}

}  // namespace mk
