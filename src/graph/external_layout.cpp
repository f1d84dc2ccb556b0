#include "graph/external_layout.h"

#include <tuple>

namespace mk {
namespace {

constexpr std::uint64_t small_alignment = 64;
constexpr std::uint64_t large_alignment = 64u << 10;
constexpr std::uint64_t large_tensor = 1u << 20;

// Equal for sources that are the same bytes. A file that was opened for the question alone has no lasting address.
using Identity = std::tuple<const void*, std::uint64_t, std::uint64_t>;
Identity identity_of(const ByteSource& source) {
  const auto range = source.file_range();
  if (range && range->file.use_count() > 1) return {range->file.get(), range->offset, range->length};
  return {&source, 0, source.size()};
}

class Planner {
 public:
  Planner(ExternalLayout& layout, std::uint64_t inline_below) : layout_(layout), inline_below_(inline_below) {}

  void add(const Graph& graph) {
    for (const Value* value : graph.initializers()) add(*value->initializer());
    for (const Node* node : graph.nodes()) {
      if (node->attributes().empty()) continue;
      for (const Graph* inner : node->subgraphs()) add(*inner);
    }
  }

 private:
  void add(const Tensor& tensor) {
    if (!tensor.data || tensor.data->size() < inline_below_ || tensor.data->size() == 0) return;
    if (find(tensor.external, "checksum")) layout_.wants_checksum = true;
    const auto [found, is_new] = seen_.try_emplace(identity_of(*tensor.data));
    if (is_new) {
      const std::uint64_t length = tensor.data->size();
      const std::uint64_t alignment = ExternalLayout::alignment_of(length);
      const std::uint64_t offset = (layout_.bytes + alignment - 1) / alignment * alignment;
      found->second = {offset, length};
      layout_.blocks.push_back({found->second, tensor.data.get()});
      layout_.bytes = offset + length;
    }
    layout_.places.emplace(&tensor, found->second);
  }

  ExternalLayout& layout_;
  std::uint64_t inline_below_;
  std::map<Identity, ExternalLayout::Place> seen_;
};

}  // namespace

std::uint64_t ExternalLayout::alignment_of(std::uint64_t length) {
  return length >= large_tensor ? large_alignment : small_alignment;
}

ExternalLayout lay_out(const Model& model, std::string location, std::uint64_t inline_below) {
  ExternalLayout layout;
  layout.location = std::move(location);
  Planner(layout, inline_below).add(*model.graph);
  return layout;
}

}  // namespace mk
