#pragma once
// winml inspect of an ONNX file, or of a folder that build made.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "graph/cost.h"
#include "graph/summary.h"
#include "hub/resolve.h"
#include "winml/command.h"

namespace mk::cli {

struct WeightRow {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;
  std::uint64_t bytes = 0;
};

struct GraphFacts {
  Path file;
  std::uint64_t file_bytes = 0;
  ModelSummary summary;
  std::optional<std::string> precision;
  std::optional<GraphCost> cost;         // none where shapes cannot be inferred
  std::vector<WeightRow> weights;        // initializers, where they were asked for
  std::shared_ptr<const Json> manifest;  // of the build that made it, where there is one
};

Result<GraphFacts> inspect_graph(const ResolvedModel& model, bool list_weights, Progress& progress);
Json to_json(const GraphFacts& facts);
std::string to_text(const GraphFacts& facts, const Context& context);

// Rows of names, types, shapes and sizes, for both kinds of model.
std::string weights_text(const std::vector<WeightRow>& weights);
Json weights_json(const std::vector<WeightRow>& weights);
Json to_json(const GraphCost& cost);
std::vector<std::vector<std::string>> cost_rows(const GraphCost& cost);
std::string short_count(double count);                         // "22.7M"
std::string dims_text(const std::vector<std::int64_t>& dims);  // "[384, 1536]"

}  // namespace mk::cli
