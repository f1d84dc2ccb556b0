// Scaled dot-product attention (Vaswani et al. 2017) from its parts. com.microsoft.Attention where queries, keys and
// values are linear layers of one input, whose weights are then joined; com.microsoft.MultiHeadAttention otherwise. A
// padding mask is given as it came into the graph; any other mask as a bias of the scores.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "optimize/attention_mask.h"
#include "optimize/attention_parts.h"
#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  raw*   = MatMul(q, kt)
  scores* = Div(raw, divisor) | Mul?(raw, factor)
  masked = Where(keep, scores, fill) | Where(drop, fill, scores) | Add?(scores, mask)
  p      = Softmax(Cast?(masked), axis=-1)
  sure   = Where(IsNaN(p), 0, p) | Cast?(p)
  c      = MatMul(sure, v)
  t      = Transpose(c, perm=[0, 2, 1, 3])
  y      = Reshape(t, _)
)",
                                         R"(
  c = Attention(q, k, v, mask?)
  t = Transpose(c, perm=[0, 2, 1, 3])
  y = Reshape(t, _)
)"};

constexpr double least_fill = -1e30;  // below it, in float32, adding to a score or taking its place is the same

struct Masking {
  PatchValue keys;  // [batch, keys]
  PatchValue bias;  // [1 or batch, 1 or heads, queries, keys]
  double fill = 0;
  std::string problem;  // why it cannot be given to the kernel
};

Masking problem(std::string text) { return {.problem = std::move(text)}; }

bool one_or(const Dim& dim, const Dim& wanted) { return same_dim(dim, Dim::known(1)) || same_dim(dim, wanted); }

// Of the scores: [batch, heads, queries, keys].
struct Scores {
  Dim batch, heads, queries, keys;
  Value* q = nullptr;  // [batch, heads, queries, size]
  DataType type = DataType::undefined;

  std::string text() const { return to_string(Type::tensor(type, Shape{batch, heads, queries, keys})); }
};

Scores scores_of(const Match& m) {
  const bool whole = m["k"] != nullptr;  // ai.onnx Attention takes keys upright
  return {m.dim("q", 0), m.dim("q", 1),       m.dim("q", 2), whole ? m.dim("k", 2) : m.dim("kt", 3),
          m["q"],        m["q"]->type.element};
}

// A mask that is added, in the shape that kernels take: not broadcast over queries.
Masking as_bias(const Scores& scores, Patch& p, PatchValue bias, const Value* like) {
  const int rank = rank_of(like);
  if (rank < 1 || rank > 4 || !same_dim(dim_of(like, -1), scores.keys) ||
      (rank > 2 && !one_or(dim_of(like, -3), scores.heads)) || (rank > 3 && !one_or(dim_of(like, -4), scores.batch))) {
    return problem("the mask " + like->name() + " of " + to_string(like->type) + " is not proven to fit the scores " +
                   scores.text());
  }
  if (rank < 4) {
    std::vector<std::int64_t> axes(static_cast<std::size_t>(4 - rank));
    std::iota(axes.begin(), axes.end(), 0);
    bias = p.op("Unsqueeze", {bias, p.integers(axes)});
  }
  const Dim queries = scores.queries;
  const Dim rows = rank > 1 ? dim_of(like, -2) : Dim::known(1);
  if (!same_dim(rows, queries)) {
    if (!same_dim(rows, Dim::known(1)))
      return problem("the mask " + like->name() + " is not proven to fit the queries");
    PatchValue shape;
    if (queries.is_known()) {
      shape = p.integers({1, 1, queries.value, 1});
    } else {
      const PatchValue count = p.op("Shape", {scores.q}).with("start", 2).with("end", 3);
      shape = p.op("Concat", {p.integers({1, 1}), count, p.integers({1})}).with("axis", 0);
    }
    bias = p.op("Expand", {bias, shape});
  }
  return {.bias = bias};
}

bool fits(const std::optional<PaddingMask>& padding, const Scores& scores) {
  return padding && same_dim(dim_of(padding->mask, 0), scores.batch) && same_dim(dim_of(padding->mask, 1), scores.keys);
}

// Where(condition, scores, fill), or the other way round.
Masking replaced(const Scores& scores, Value* condition, bool keeps, double fill, Patch& p) {
  const auto padding = padding_condition(condition, keeps, fill);
  if (fits(padding, scores)) return {.keys = key_mask(p, *padding), .fill = fill};
  const PatchValue none = p.scalar(scores.type, 0), out = p.scalar(scores.type, fill);
  const PatchValue bias = p.op("Where", {condition, keeps ? none : out, keeps ? out : none});
  return as_bias(scores, p, bias, condition);
}

Masking added(const Scores& scores, Value* mask, Patch& p) {
  const auto padding = padding_mask(mask);
  if (fits(padding, scores)) return {.keys = key_mask(p, *padding), .fill = padding->fill};
  return as_bias(scores, p, mask, mask);
}

Masking masking(const Match& m, Patch& p) {
  const Scores scores = scores_of(m);
  if (m["k"]) return {};
  const Node* node = m.node("masked");
  if (!node) return {};
  if (node->op_type == "Add") return added(scores, m["mask"], p);
  const auto fill = m.scalar("fill");
  if (!fill || *fill > least_fill) return problem("the scores of masked keys become no constant below -1e30");
  return replaced(scores, m["keep"] ? m["keep"] : m["drop"], m["keep"] != nullptr, *fill, p);
}

struct Operands {
  Heads q, k, v;
  double scale = 1;
};

Result<Operands> operands(const Match& m) {
  Operands parts;
  const auto named = [](const char* what, Result<Heads> heads) -> Result<Heads> {
    if (heads) return heads;
    return fail(ErrorCode::usage, std::string(what) + ": " + heads.error().message);
  };
  MK_TRY(parts.q, named("queries", heads_of(m["q"])));
  MK_TRY(parts.k, named("keys", m["k"] ? heads_of(m["k"]) : transposed_heads_of(m["kt"])));
  MK_TRY(parts.v, named("values", heads_of(m["v"])));
  const Heads &q = parts.q, &k = parts.k, &v = parts.v;
  if (q.count != k.count || q.count != v.count || q.size != k.size) {
    return fail(ErrorCode::usage, "queries, keys and values have different heads");
  }
  if (v.factor != 1) return fail(ErrorCode::usage, "the values are scaled");
  parts.scale = q.factor * k.factor;
  if (m["k"]) {
    const double usual = 1 / std::sqrt(static_cast<double>(q.size));
    const Node& whole = *m.node("c");
    parts.scale *= whole.attribute("scale") ? static_cast<double>(whole.real("scale", 0)) : usual;
    return parts;
  }
  if (const Node* scaling = m.node("scores")) {
    const bool divides = scaling->op_type == "Div";
    const auto constant = m.scalar(divides ? "divisor" : "factor");
    if (!constant || *constant == 0) return fail(ErrorCode::usage, "the scale of the scores is not a constant");
    parts.scale *= divides ? 1 / *constant : *constant;
  }
  return parts;
}

// Input, joined weight and joined bias of Attention; nothing where the layers are not of one input.
std::optional<std::array<PatchValue, 3>> packed(const Operands& parts, DataType type, Patch& p) {
  const Heads &q = parts.q, &k = parts.k, &v = parts.v;
  if (q.joint && q.joint == k.joint && q.joint == v.joint && q.part == 0 && k.part == 1 && v.part == 2) {
    const auto linear = linear_of(q.joint);
    if (linear) return std::array<PatchValue, 3>{linear->x, linear->weight, linear->bias};
  }
  if (!q.flat || !k.flat || !v.flat) return std::nullopt;
  const auto a = linear_of(q.flat), b = linear_of(k.flat), c = linear_of(v.flat);
  if (!a || !b || !c || a->x != b->x || a->x != c->x) return std::nullopt;
  auto weight = joined_columns({a->weight, b->weight, c->weight});
  if (!weight) return std::nullopt;
  PatchValue joined_bias;
  if (a->bias || b->bias || c->bias) {
    auto bias =
        joined_vectors({a->bias, b->bias, c->bias}, {q.count * q.size, k.count * k.size, v.count * v.size}, type);
    if (!bias) return std::nullopt;
    joined_bias = p.constant(std::move(*bias));
  }
  return std::array<PatchValue, 3>{a->x, p.constant(std::move(*weight)), joined_bias};
}

// The operands of MultiHeadAttention, with their biases taken out where each has one.
std::vector<PatchValue> separate(const Operands& parts, DataType type, Patch& p) {
  const Heads &q = parts.q, &k = parts.k, &v = parts.v;
  const auto a = biased(q.flat), b = biased(k.flat), c = biased(v.flat);
  if (a && b && c) {
    auto bias =
        joined_vectors({a->bias, b->bias, c->bias}, {q.count * q.size, k.count * k.size, v.count * v.size}, type);
    if (bias) return {a->x, b->x, c->x, p.constant(std::move(*bias))};
  }
  return {q.flat, k.flat, v.flat, PatchValue()};
}

// A node outside the match that reads the scores: one that reads more than their shape, if there is such a one.
const Node* other_reader(const Match& m) {
  const Node* of_shape = nullptr;
  for (const Value* scores : {m["raw"], m["scores"]}) {
    for (const Use& use : scores->uses()) {
      if (std::find(m.nodes().begin(), m.nodes().end(), use.node) != m.nodes().end()) continue;
      if (use.node->op_type != "Shape") return use.node;
      of_shape = use.node;
    }
  }
  return of_shape;
}

// ai.onnx Attention of heads becomes one that splits and joins them itself. What else it says stays as it is: its
// kernel gives zeros for rows that are masked entirely, which com.microsoft's do not.
Outcome with_heads_inside(const Match& m, const Operands& parts, Patch& p) {
  if (!parts.q.flat || !parts.k.flat || !parts.v.flat) return skip("its heads are of a joint projection");
  PatchNode node = p.op("Attention", {parts.q.flat, parts.k.flat, parts.v.flat, m["mask"]});
  node.with("q_num_heads", parts.q.count).with("kv_num_heads", parts.k.count);
  node.with("scale", static_cast<float>(parts.scale));
  for (const char* name : {"is_causal", "softcap", "qk_matmul_output_mode", "softmax_precision"}) {
    if (const Attribute* attribute = m.node("c")->attribute(name)) node.with(*attribute);
  }
  p.replace(m["y"], node);
  return fired;
}

// Whether ai.onnx Attention does no more than com.microsoft's.
bool is_plain(const Match& m) {
  const Node& node = *m.node("c");
  return !m["mask"] && node.integer("is_causal", 0) == 0 && node.real("softcap", 0) == 0;
}

// Of the parts: what stands in the way of taking them out.
std::optional<std::string> entangled(const Match& m, const Patch& p) {
  const Node* const reader = other_reader(m);
  if (reader && reader->op_type != "Shape") return "the scores are also used by " + reader->label();
  if (m["raw"]->is_graph_output() || m["scores"]->is_graph_output()) return "the scores are also a graph output";
  constexpr std::int64_t opset_of_last_axis = 13;  // before, Softmax goes over all axes from 1 on if it names none
  if (p.opset() < opset_of_last_axis && !m.node("p")->attribute("axis")) return "the softmax is not of each row";
  if (rank_of(m["raw"]) != 4) return "the scores are not of four dimensions";
  return std::nullopt;
}

// What only the kind of mask says.
std::optional<std::string> unmaskable(const Match& m, const Masking& mask) {
  if (!mask.problem.empty()) return mask.problem;
  if (m["k"]) return std::nullopt;
  // A padding mask is taken where it comes into the graph, and what gave it the scores' shape goes.
  const Node* const reader = other_reader(m);
  if (reader && mask.fill == 0) return "the shape of the scores is also read by " + reader->label();
  const bool checks_nan = m.node("sure") && m.node("sure")->op_type == "Where";
  if (checks_nan && m.node("masked") && !(mask.fill < 0 && std::isfinite(mask.fill))) {
    return "rows that are masked entirely become zeros, which the kernel does not do";
  }
  return std::nullopt;
}

Outcome rewrite(const Match& m, Patch& p) {
  const Value* const y = m["y"];
  if (!m["k"]) {
    if (const auto reason = entangled(m, p)) return skip(*reason);
  }
  if (!joins_heads(m["t"], y)) {
    return skip("it is not proven that the result is [batch, tokens, heads * size] of its heads");
  }
  const Result<Operands> read = operands(m);
  if (!read) return skip(read.error().message);
  const Operands& parts = *read;
  const DataType type = y->type.element;
  if (!is_kernel_float(y)) return skip("no kernel is of its type");
  if (m["k"] && !is_plain(m)) return with_heads_inside(m, parts, p);
  const Masking mask = masking(m, p);
  if (const auto reason = unmaskable(m, mask)) return skip(*reason);

  const auto joint = packed(parts, type, p);
  if (!joint && (!parts.q.flat || !parts.k.flat || !parts.v.flat)) {
    return skip("queries, keys and values are of a joint projection that is no linear layer used only here");
  }
  const Dim keys_batch = m["k"] ? m.dim("k", 0) : m.dim("kt", 0);
  if (!joint && (!same_dim(m.dim("q", 0), keys_batch) || !same_dim(m.dim("q", 0), m.dim("v", 0)))) {
    return skip("queries, keys and values are not proven to be of one batch");
  }
  std::vector<PatchValue> inputs;
  if (joint) {
    inputs = {(*joint)[0], (*joint)[1], (*joint)[2], mask.keys, PatchValue(), mask.bias};
  } else {
    inputs = separate(parts, type, p);
    inputs.insert(inputs.end(), {mask.keys, mask.bias});
  }
  PatchNode node = p.op(joint ? "com.microsoft.Attention" : "com.microsoft.MultiHeadAttention", std::move(inputs));
  node.with("num_heads", parts.q.count).like(y);
  const double usual = 1 / std::sqrt(static_cast<double>(parts.q.size));
  if (std::abs(parts.scale - usual) > 1e-6 * usual) node.with("scale", static_cast<float>(parts.scale));
  if (mask.fill != 0) node.with("mask_filter_value", static_cast<float>(mask.fill));
  if (joint && parts.v.size != parts.q.size) {
    const std::int64_t hidden = parts.q.count * parts.q.size;
    node.with("qkv_hidden_sizes", std::vector<std::int64_t>{hidden, hidden, parts.v.count * parts.v.size});
  }
  p.replace(m["y"], node);
  return fired;
}

}  // namespace

extern const Pass attention_fusion;
const Pass attention_fusion{.name = "attention-fusion",
                            .category = "attention",
                            .summary = "Scaled dot-product attention becomes Attention or MultiHeadAttention",
                            .patterns = patterns,
                            .rewrite = rewrite};

}  // namespace mk
