#include "graph/cost.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "graph/einsum_equation.h"

namespace mk {
namespace {

using Sizes = std::map<std::string, std::int64_t, std::less<>>;
using Dims = std::vector<std::uint64_t>;
using Macs = std::optional<std::uint64_t>;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return a != 0 && b > most / a ? most : a * b;
}
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return b > most - a ? most : a + b;
}
std::uint64_t product(const Dims& dims, std::size_t first = 0) {
  std::uint64_t all = 1;
  for (std::size_t i = first; i < dims.size(); ++i) all = times(all, dims[i]);
  return all;
}

// One graph and its sub-graphs, with the symbols that were met on the way.
class Estimate {
 public:
  explicit Estimate(const Sizes& sizes) : sizes_(sizes) {}

  std::uint64_t macs(const Graph& graph) {
    std::uint64_t all = 0;
    for (const Node* node : graph.nodes()) {
      all = plus(all, of(*node));
      std::uint64_t bodies = 0;
      for (const Graph* body : node->subgraphs()) bodies = std::max(bodies, macs(*body));
      all = plus(all, bodies);
    }
    return all;
  }

  std::optional<Dims> dims(const Value* value) {
    if (!value || !value->type.is_tensor() || !value->type.shape) return std::nullopt;
    Dims known;
    for (const Dim& dim : *value->type.shape) {
      std::int64_t size = dim.value;
      if (!dim.is_known()) {
        const auto given = sizes_.find(dim.symbol);
        size = given == sizes_.end() ? 1 : given->second;
        if (given == sizes_.end()) assumed_.insert(dim.symbol.empty() ? "?" : dim.symbol);
      }
      known.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)));
    }
    return known;
  }

  std::uint64_t bytes(const Value* value) {
    const auto known = dims(value);
    if (!known) return 0;
    return times(product(*known), static_cast<std::uint64_t>(bits_of(value->type.element))) / 8;
  }

  std::uint64_t peak_bytes(const Graph& graph) {
    std::unordered_map<const Value*, std::size_t> left;  // uses to come
    std::uint64_t alive = 0, most = 0;
    const auto enter = [&](const Value* value) {
      if (!value || value->initializer()) return;
      left.emplace(value, value->uses().size() + (value->is_graph_output() ? 1 : 0));
      alive = plus(alive, bytes(value));
    };
    for (const Value* input : graph.inputs()) enter(input);
    most = alive;
    for (const Node* node : graph.nodes()) {
      for (const Value* output : node->outputs()) enter(output);
      std::uint64_t inside = 0;
      for (const Graph* body : node->subgraphs()) inside = std::max(inside, peak_bytes(*body));
      most = std::max(most, plus(alive, inside));
      const auto leave = [&](const Value* value) {
        const auto entry = left.find(value);
        if (entry == left.end()) return;
        if (entry->second > 0) --entry->second;
        if (entry->second > 0) return;
        alive -= std::min(alive, bytes(value));
        left.erase(entry);
      };
      leave_inputs(*node, leave);
      for (const Value* output : node->outputs())
        if (output && output->uses().empty() && !output->is_graph_output()) leave(output);
    }
    return most;
  }

  std::vector<std::string> assumed() const { return {assumed_.begin(), assumed_.end()}; }
  std::size_t unknown() const { return unknown_; }

 private:
  // What the bodies of a node capture is used by the node.
  template <typename Leave>
  static void leave_inputs(const Node& node, const Leave& leave) {
    for (const Value* input : node.inputs()) leave(input);
    for (const Graph* body : node.subgraphs())
      for (const Node* inner : body->nodes()) leave_inputs(*inner, leave);
  }

  Macs matmul(const Node& node) { return by_inner(node, 0, -1); }
  Macs gemm(const Node& node) { return by_inner(node, 0, node.integer("transA", 0) != 0 ? 0 : -1); }
  Macs qlinear_matmul(const Node& node) { return by_inner(node, 0, -1); }

  // Elements of the result, each a sum over the axis of an input.
  Macs by_inner(const Node& node, std::size_t input, int axis) {
    const auto in = dims(node.input(input)), out = dims(node.output(0));
    if (!in || !out || in->empty()) return std::nullopt;
    return times(product(*out), axis < 0 ? in->back() : in->front());
  }

  Macs matmul_nbits(const Node& node) {
    const auto out = dims(node.output(0));
    if (!out) return std::nullopt;
    return times(product(*out), static_cast<std::uint64_t>(std::max<std::int64_t>(node.integer("K", 0), 0)));
  }

  // Each element of the result takes one weight of each input channel of its group and each place of the kernel.
  Macs convolution(const Node& node, std::size_t weight) {
    const auto w = dims(node.input(weight)), out = dims(node.output(0));
    if (!w || !out || w->empty()) return std::nullopt;
    return times(product(*out), product(*w, 1));
  }
  Macs conv(const Node& node) { return convolution(node, 1); }
  Macs qlinear_conv(const Node& node) { return convolution(node, 3); }
  Macs conv_transpose(const Node& node) {
    const auto in = dims(node.input(0)), w = dims(node.input(1));
    if (!in || !w || w->empty()) return std::nullopt;
    return times(product(*in), product(*w, 1));
  }

  Macs einsum(const Node& node) {
    const auto equation = plain_einsum_equation(node.string("equation", ""));
    if (!equation) return std::nullopt;
    std::map<char, std::uint64_t> letters;
    std::size_t at = 0;
    for (const Value* input : node.inputs()) {
      const auto in = dims(input);
      if (!in) return std::nullopt;
      const std::size_t end = std::min(equation->find_first_of(",-", at), equation->size());
      const std::string_view term = std::string_view(*equation).substr(at, end - at);
      if (term.size() != in->size() || term.find('.') != std::string_view::npos) return std::nullopt;
      for (std::size_t i = 0; i < term.size(); ++i) letters[term[i]] = std::max(letters[term[i]], (*in)[i]);
      at = std::min(end + 1, equation->size());
    }
    std::uint64_t all = 1;
    for (const auto& [letter, size] : letters) all = times(all, size);
    return all;
  }

  // Queries [batch, length, width] against keys of `total` positions: scores, and the values they weigh.
  static std::uint64_t attention_macs(std::uint64_t batch, std::uint64_t length, std::uint64_t total,
                                      std::uint64_t width) {
    return times(2, times(times(batch, length), times(total, width)));
  }
  // com.microsoft.Attention projects its input first.
  Macs fused_attention(const Node& node) {
    const auto in = dims(node.input(0)), w = dims(node.input(1)), out = dims(node.output(0));
    if (!in || !w || !out || in->size() != 3 || w->size() != 2 || out->size() != 3) return std::nullopt;
    return plus(times(product(*in), (*w)[1]), attention_macs((*in)[0], (*in)[1], (*in)[1], (*out)[2]));
  }
  // com.microsoft.MultiHeadAttention and GroupQueryAttention, and ai.onnx's Attention: query, key.
  Macs query_key_attention(const Node& node) {
    const auto q = dims(node.input(0)), k = dims(node.input(1));
    if (!q || q->size() < 3) return std::nullopt;
    const std::uint64_t batch = q->front(), length = q->size() == 4 ? (*q)[2] : (*q)[1];
    const std::uint64_t width = q->size() == 4 ? times((*q)[1], (*q)[3]) : product(*q, 2);
    std::uint64_t total = length;
    if (k && k->size() >= 3) total = k->size() == 4 ? (*k)[2] : (*k)[1];
    const auto present = dims(node.output(1));
    if (present && present->size() == 4) total = std::max(total, (*present)[2]);
    return attention_macs(batch, length, total, width);
  }

  // X [steps, batch, width], W and R [directions, gates * hidden, ...].
  Macs recurrent(const Node& node) {
    const auto x = dims(node.input(0)), w = dims(node.input(1)), r = dims(node.input(2));
    if (!x || !w || !r || x->size() != 3) return std::nullopt;
    return times(times((*x)[0], (*x)[1]), plus(product(*w), product(*r)));
  }

  std::uint64_t of(const Node& node) {
    struct Row {
      std::string_view op_type;
      Macs (Estimate::*macs)(const Node&);
      bool microsoft = false;  // only of com.microsoft
    };
    static constexpr std::array rows{
        Row{"MatMul", &Estimate::matmul},
        Row{"Gemm", &Estimate::gemm},
        Row{"Conv", &Estimate::conv},
        Row{"ConvTranspose", &Estimate::conv_transpose},
        Row{"ConvInteger", &Estimate::conv},
        Row{"QLinearConv", &Estimate::qlinear_conv},
        Row{"MatMulInteger", &Estimate::matmul},
        Row{"QLinearMatMul", &Estimate::qlinear_matmul},
        Row{"Einsum", &Estimate::einsum},
        Row{"LSTM", &Estimate::recurrent},
        Row{"GRU", &Estimate::recurrent},
        Row{"RNN", &Estimate::recurrent},
        Row{"Attention", &Estimate::fused_attention, true},
        Row{"Attention", &Estimate::query_key_attention},
        Row{"MultiHeadAttention", &Estimate::query_key_attention, true},
        Row{"GroupQueryAttention", &Estimate::query_key_attention, true},
        Row{"FusedMatMul", &Estimate::matmul, true},
        Row{"FusedGemm", &Estimate::gemm, true},
        Row{"FusedConv", &Estimate::conv, true},
        Row{"DynamicQuantizeMatMul", &Estimate::matmul, true},
        Row{"MatMulIntegerToFloat", &Estimate::matmul, true},
        Row{"MatMulNBits", &Estimate::matmul_nbits, true},
    };
    const bool standard = node.domain.empty() || node.domain == "ai.onnx", microsoft = node.domain == "com.microsoft";
    for (const Row& row : rows) {
      if (node.op_type != row.op_type || !(row.microsoft ? microsoft : standard)) continue;
      const Macs macs = (this->*row.macs)(node);
      unknown_ += !macs;
      return macs.value_or(0);
    }
    return 0;
  }

  const Sizes& sizes_;
  std::set<std::string> assumed_;
  std::size_t unknown_ = 0;
};

}  // namespace

GraphCost cost_of(const Graph& graph, const Sizes& sizes) {
  Estimate estimate(sizes);
  GraphCost cost;
  cost.macs = estimate.macs(graph);
  cost.peak_activation_bytes = estimate.peak_bytes(graph);
  cost.assumed = estimate.assumed();
  cost.unknown_nodes = estimate.unknown();
  return cost;
}

}  // namespace mk
