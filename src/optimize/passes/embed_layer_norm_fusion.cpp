// The embeddings of a text encoder, their sum and its LayerNormalization become EmbedLayerNormalization: a word table,
// a position table (from row 0 on, or by position ids) and perhaps a segment table. A constant row in the sum (the only
// segment of RoBERTa) goes into the position table.

#include <algorithm>
#include <cstring>

#include "graph/element_access.h"
#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  s* = Add(a, b)
  y  = LayerNormalization(s, gamma, beta, axis=-1)
)"};

struct Lookup {
  Value* table = nullptr;
  Value* ids = nullptr;
};

struct Embeddings {
  std::vector<Lookup> lookups;  // by ids of the whole batch
  Value* positions = nullptr;   // a table whose first rows are taken in order
  Lookup shared;                // by the same ids for all of the batch
  Bytes row;                    // one constant row
};

// Whether ids are 0, 1, 2 ... along the last axis, `count` of them.
bool counts_up(const Value* ids, const Dim& count) {
  const Node* slice = ids->producer();
  if (slice && slice->op_type == "Slice" && slice->domain.empty()) {
    const auto starts = integers_of(slice->input(1)), axes = integers_of(slice->input(3));
    const auto steps = slice->input(4) ? integers_of(slice->input(4)) : std::vector<std::int64_t>{1};
    const std::vector<std::int64_t> last{rank_of(ids) - 1}, last_from_end{-1}, zero{0}, one{1};
    const Dim all = dim_of(slice->input(0), -1);
    return starts == zero && steps == one && (axes == last || axes == last_from_end) && all.is_known() &&
           all.value > 1 && counts_up(slice->input(0), all) &&
           (same_dim(dim_of(ids, -1), count) || same_dim(dimension_read(slice->input(2)), count));
  }
  if (!same_dim(dim_of(ids, -1), count)) return false;
  const auto values = integers_of(ids);
  if (!values) return false;
  for (std::size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i] != static_cast<std::int64_t>(i)) return false;
  }
  const Dim last = dim_of(ids, -1);
  return last.is_known() && last.value == static_cast<std::int64_t>(values->size());
}

bool is_float_table(const Value* table, const Dim& hidden) {
  return rank_of(table) == 2 && same_dim(dim_of(table, 1), hidden) && table->type.element == DataType::float32 &&
         is_constant(table);
}

// A table whose first `count` rows are taken by Slice; null where it is something else.
Value* first_rows(const Value* term, const Value* s) {
  const Dim count = dim_of(s, 1);
  const Node* slice = term->producer();
  if (!slice || slice->op_type != "Slice" || !slice->domain.empty() || !is_float_table(slice->input(0), dim_of(s, 2)))
    return nullptr;
  const std::vector<std::int64_t> zero{0}, one{1};
  const bool from_start = integers_of(slice->input(1)) == zero && slice->input(3) &&
                          integers_of(slice->input(3)) == zero &&
                          (!slice->input(4) || integers_of(slice->input(4)) == one);
  const Dim rows = dim_of(slice->input(0), 0);
  const bool all = same_dim(dim_of(term, 0), count) || same_dim(dimension_read(slice->input(2)), count);
  return from_start && all && rows.is_known() && rows.value > 1 ? slice->input(0) : nullptr;
}

// The row that all rows of a constant are; null where they differ, or it is too large to look at.
Bytes only_row(const Value* term) {
  constexpr std::uint64_t most_bytes = 32u << 20;
  const std::optional<Tensor> tensor = constant_of(term);
  if (!tensor || tensor->dims.empty() || tensor->byte_count() > most_bytes) return nullptr;
  const auto width = static_cast<std::size_t>(tensor->dims.back()) * sizeof(float);
  if (width == 0 || tensor->data->size() == 0) return nullptr;
  std::vector<std::byte> two(static_cast<std::size_t>(std::min<std::uint64_t>(2 * width, tensor->data->size())));
  if (!tensor->data->read(0, two) || std::memcmp(two.data(), two.data() + two.size() - width, width) != 0) {
    return nullptr;
  }
  const auto bytes = read_all(*tensor->data);
  if (!bytes) return nullptr;
  for (std::size_t at = width; at < bytes->size(); at += width) {
    if (std::memcmp(bytes->data(), bytes->data() + at, width) != 0) return nullptr;
  }
  return sliced(tensor->data, 0, width);
}

// What one term of the sum adds to `found`; a reason where it is no embedding.
std::optional<std::string> sort_in(Value* term, const Value* s, Embeddings& found) {
  const Node* gather = term->producer();
  if (gather && gather->op_type == "Gather" && gather->domain.empty()) {
    Value *table = gather->input(0), *ids = gather->input(1);
    if (gather->integer("axis", 0) != 0 || !is_float_table(table, dim_of(s, 2)))
      return term->name() + " is no lookup in a table";
    if (!is_integer(ids->type.element)) return term->name() + " has ids of another type";
    const int rank = rank_of(ids);
    const bool all_of_it =
        rank == 2 && same_dim(dim_of(ids, 0), dim_of(s, 0)) && same_dim(dim_of(ids, 1), dim_of(s, 1));
    const bool of_one = rank == 2 && dim_of(ids, 0).is_known() && dim_of(ids, 0).value == 1;
    if ((of_one || rank == 1) && counts_up(ids, dim_of(s, 1))) {
      if (found.positions || found.shared.table) return "it adds two position embeddings";
      found.positions = table;
    } else if (all_of_it) {
      found.lookups.push_back({table, ids});
    } else {
      if (!of_one || !same_dim(dim_of(ids, 1), dim_of(s, 1)) || found.positions || found.shared.table) {
        return term->name() + " has ids of another shape than the sum (" + to_string(ids->type) + ')';
      }
      found.shared = {table, ids};
    }
    return std::nullopt;
  }
  if (Value* table = first_rows(term, s)) {
    if (found.positions || found.shared.table) return "it adds two position embeddings";
    found.positions = table;
    return std::nullopt;
  }
  const auto dims = static_dims(term);
  if (!dims || dims->empty() || term->type.element != DataType::float32 || !is_constant(term)) {
    return term->name() + " is neither a lookup in a table nor a constant";
  }
  if (dims->back() != dim_of(s, 2).value || dims->size() > 3) return term->name() + " has another shape than the sum";
  if (const Bytes row = only_row(term); row && !same_dim(dim_of(s, 1), Dim::known(1))) {
    if (found.row) return "it adds two constant rows";
    found.row = row;
    return std::nullopt;
  }
  if (dims->size() == 3 && dims->front() != 1) return term->name() + " is a constant that differs in the batch";
  if (found.positions || found.shared.table) return "it adds two position embeddings";
  found.positions = term;
  return std::nullopt;
}

// A table as a matrix, with a constant row added to each of its rows.
std::optional<PatchValue> position_table(Patch& p, Value* table, const Bytes& row) {
  std::optional<Tensor> tensor = constant_of(table);
  if (!tensor || tensor->dims.size() < 2) return std::nullopt;
  if (!row && tensor->dims.size() == 2) return table;
  tensor->name = table->name();
  tensor->dims.erase(tensor->dims.begin(), tensor->dims.end() - 2);
  if (row) {
    tensor->data = computed(tensor->byte_count(), [rows = tensor->data, one = row](std::span<std::byte> out) -> Status {
      MK_CHECK(rows->read(0, out));
      MK_TRY(const std::vector<std::byte> addend, read_all(*one));
      for (std::size_t at = 0; at < out.size(); at += sizeof(float)) {
        float sum, value;
        std::memcpy(&sum, out.data() + at, sizeof sum);
        std::memcpy(&value, addend.data() + at % addend.size(), sizeof value);
        sum += value;
        std::memcpy(out.data() + at, &sum, sizeof sum);
      }
      return Status{};
    });
  }
  return p.constant(std::move(*tensor));
}

Outcome rewrite(const Match& m, Patch& p) {
  Value* const s = m["s"];
  const Node& norm = m.root();
  if (rank_of(s) != 3 || s->type.element != DataType::float32)
    return skip("the sum is not float32 [batch, tokens, hidden]");
  for (std::size_t i = 1; i < norm.outputs().size(); ++i) {
    if (norm.output(i) && !norm.output(i)->is_unused()) return skip("its statistics are used");
  }
  for (const Value* operand : {m["gamma"], m["beta"]}) {
    if (!is_row_constant(operand, s)) return skip("scale or bias is no constant vector of the last axis");
  }
  std::vector<Value*> terms;
  for (Value* side : {m["a"], m["b"]}) {
    const Node* inner = side->producer();
    const bool is_sum = inner && inner->op_type == "Add" && inner->domain.empty() && only_user(side, "Add");
    if (is_sum) terms.insert(terms.end(), {inner->input(0), inner->input(1)});
    if (!is_sum) terms.push_back(side);
  }
  if (terms.size() > 3) return skip("it is a sum of more than three");
  const auto is_lookup = [](const Value* term) { return term->producer() && term->producer()->op_type == "Gather"; };
  if (std::none_of(terms.begin(), terms.end(), is_lookup)) return skip("");  // a sum like any other
  Embeddings found;
  for (Value* term : terms) {
    if (auto reason = sort_in(term, s, found)) return skip(*reason);
  }
  auto& lookups = found.lookups;
  std::stable_sort(lookups.begin(), lookups.end(), [](const Lookup& one, const Lookup& other) {
    return dim_of(one.table, 0).value > dim_of(other.table, 0).value;
  });
  if (lookups.empty()) return skip("no term is looked up by ids of the whole batch");
  const Lookup word = lookups.front();
  lookups.erase(lookups.begin());
  Lookup position = found.positions ? Lookup{found.positions, nullptr} : found.shared;
  if (!position.table && !lookups.empty()) {
    position = lookups.front();
    lookups.erase(lookups.begin());
  }
  if (!position.table) return skip("it has no position embedding");
  if (lookups.size() > 1) return skip("it has more than one segment embedding");
  const Lookup segment = lookups.empty() ? Lookup{} : lookups.front();
  const auto positions = position_table(p, position.table, found.row);
  if (!positions) return skip("its position table is no matrix");

  const auto ids = [&](Value* value) { return value ? as_int32(p, value) : PatchValue(); };
  PatchNode fused = p.op("com.microsoft.EmbedLayerNormalization",
                         {ids(word.ids), ids(segment.ids), word.table, *positions, segment.table, m["gamma"], m["beta"],
                          PatchValue(), ids(position.ids)});
  fused.with("epsilon", norm.real("epsilon", 1e-5F)).like(m["y"]);
  // Its type inference wants the end of each mask, too, though there is none.
  fused.typed(Type::tensor(DataType::int32, Shape{dim_of(s, 0)}), 1);
  p.replace(m["y"], fused);
  if (s->uses().size() > 1 || s->is_graph_output()) p.replace(s, fused.like(s, 2)[2]);
  return fired;
}

}  // namespace

extern const Pass embed_layer_norm_fusion;
const Pass embed_layer_norm_fusion{
    .name = "embed-layer-norm-fusion",
    .category = "layer_norm",
    .summary = "Word, position and segment embeddings and LayerNormalization become EmbedLayerNormalization",
    .depends = "layer-norm-fusion",
    .patterns = patterns,
    .rewrite = rewrite};

}  // namespace mk
