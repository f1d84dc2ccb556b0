#include "winml/inspect_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "graph/onnx_reader.h"
#include "graph/precision.h"
#include "graph/shape_inference.h"

namespace mk::cli {
namespace {

// The newest manifest of the folder; damage in it is not the model's.
std::shared_ptr<const Json> manifest_beside(const Path& model) {
  const Path file = model.parent_path() / "build_manifest.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return nullptr;
  auto json = read_json(file);
  if (!json || !json->is_object() || json->value("final_artifact", Json()) != to_utf8(model.filename())) return nullptr;
  return std::make_shared<const Json>(std::move(*json));
}

Json port_json(const ModelSummary::Port& port) {
  Json json = {{"name", port.name}, {"dtype", nullptr}, {"shape", nullptr}, {"type", to_string(port.type)}};
  if (!port.type.is_tensor()) return json;
  json["dtype"] = name_of(port.type.element);
  if (port.type.shape) {
    json["shape"] = Json::array();
    for (const Dim& dim : *port.type.shape) {
      if (dim.is_known()) {
        json["shape"].push_back(dim.value);
      } else if (dim.is_symbolic()) {
        json["shape"].push_back(dim.symbol);
      } else {
        json["shape"].push_back(nullptr);
      }
    }
  }
  return json;
}

std::string operator_name(const ModelSummary::OperatorCount& count) {
  return count.domain.empty() ? count.op_type : count.domain + "." + count.op_type;
}

std::string state_of(const ModelSummary& summary) {
  return summary.compiled ? "compiled" : summary.quantized ? "quantized" : "raw";
}

std::string ports_text(const std::vector<ModelSummary::Port>& ports) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(ports.size());
  for (const auto& port : ports) rows.push_back({port.name, to_string(port.type)});
  return columns(rows);
}

}  // namespace

Result<GraphFacts> inspect_graph(const ResolvedModel& resolved, bool list_weights, Progress& progress) {
  GraphFacts facts;
  facts.file = resolved.onnx;
  MK_TRY(auto model, read_onnx(resolved.onnx, {.progress = &progress, .require_external_data = false}));
  std::error_code ignored;
  facts.file_bytes = std::filesystem::file_size(resolved.onnx, ignored);
  facts.summary = summarize(*model);
  facts.precision = detected_precision(*model);
  // The facts above are of the file as it is; what is inferred serves the cost alone.
  if (infer_shapes(*model)) facts.cost = cost_of(*model->graph);
  facts.manifest = manifest_beside(resolved.onnx);
  if (list_weights) {
    for (const Value* value : model->graph->initializers()) {
      const Tensor& tensor = *value->initializer();
      facts.weights.push_back({value->name(), tensor.type, tensor.dims, tensor.byte_count()});
    }
  }
  return facts;
}

Json to_json(const GraphFacts& facts) {
  const ModelSummary& s = facts.summary;
  Json opsets = Json::object(), operators = Json::object(), metadata = Json::object();
  for (const auto& [domain, version] : s.opset_imports) opsets[domain.empty() ? "ai.onnx" : domain] = version;
  for (const auto& count : s.operators) operators[operator_name(count)] = count.nodes;
  for (const auto& [key, value] : s.metadata) metadata[key] = value;
  Json by_type = Json::array(), files = Json::array(), inputs = Json::array(), outputs = Json::array();
  for (const auto& count : s.weights)
    by_type.push_back({{"dtype", name_of(count.type)},
                       {"tensors", count.tensors},
                       {"elements", count.elements},
                       {"bytes", count.bytes}});
  for (const auto& file : s.external_files)
    files.push_back(
        {{"location", file.location}, {"tensors", file.tensors}, {"bytes", file.bytes}, {"missing", file.missing}});
  for (const auto& port : s.inputs) inputs.push_back(port_json(port));
  for (const auto& port : s.outputs) outputs.push_back(port_json(port));
  Json json = {
      {"path", to_utf8(facts.file)},
      {"kind", "onnx"},
      {"file_bytes", facts.file_bytes},
      {"ir_version", s.ir_version},
      {"opset_imports", std::move(opsets)},
      {"producer_name", s.producer_name},
      {"producer_version", s.producer_version},
      {"domain", s.domain},
      {"model_version", s.model_version},
      {"graph_name", s.graph_name},
      {"state", state_of(s)},
      {"precision", facts.precision ? Json(*facts.precision) : Json(nullptr)},
      {"inputs", std::move(inputs)},
      {"outputs", std::move(outputs)},
      {"nodes", s.nodes},
      {"subgraphs", s.subgraphs},
      {"subgraph_nodes", s.subgraph_nodes},
      {"operators", std::move(operators)},
      {"functions", s.functions},
      {"weights",
       {{"initializers", s.initializers},
        {"constants", s.constants},
        {"parameters", s.parameters},
        {"bytes", s.weight_bytes},
        {"by_type", std::move(by_type)},
        {"external_files", std::move(files)}}},
      {"cost", facts.cost ? to_json(*facts.cost) : Json(nullptr)},
      {"metadata", std::move(metadata)},
      {"build", facts.manifest ? *facts.manifest : Json(nullptr)},
  };
  if (!facts.weights.empty()) json["tensors"] = weights_json(facts.weights);
  return json;
}

std::string to_text(const GraphFacts& facts, const Context& context) {
  const ModelSummary& s = facts.summary;
  const Style& style = context.style;
  std::string opsets;
  for (const auto& [domain, version] : s.opset_imports)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : domain, version);
  std::string text = fmt::format("{}\n", style.bold(to_utf8(facts.file)));
  std::vector<std::vector<std::string>> rows{
      {"File", bytes_text(facts.file_bytes)},
      {"IR version", std::to_string(s.ir_version)},
      {"Opset", opsets},
      {"Producer", fmt::format("{}{}{}", s.producer_name, s.producer_version.empty() ? "" : " ", s.producer_version)},
      {"State", facts.precision ? fmt::format("{}, {}", state_of(s), *facts.precision) : state_of(s)},
  };
  if (facts.manifest) {
    const auto field = [&](const char* key) {
      const Json value = facts.manifest->value(key, Json());
      return value.is_string() ? value.get<std::string>() : std::string();
    };
    rows.push_back({"Built from", fmt::format("{} {}", field("model_id"), field("input_onnx"))});
    rows.push_back({"Task", field("task")});
  }
  text += columns(rows);
  text += fmt::format("\n{}\n{}", style.bold("Inputs"), ports_text(s.inputs));
  text += fmt::format("\n{}\n{}", style.bold("Outputs"), ports_text(s.outputs));

  text += fmt::format("\n{}\n", style.bold(fmt::format("Nodes: {}", s.nodes)));
  if (s.subgraphs > 0) text += fmt::format("  and {} in {} sub-graphs\n", s.subgraph_nodes, s.subgraphs);
  constexpr std::size_t shown_operators = 12;
  const std::size_t shown = context.verbosity > 0 ? s.operators.size() : std::min(shown_operators, s.operators.size());
  rows.clear();
  for (std::size_t i = 0; i < shown; ++i)
    rows.push_back({operator_name(s.operators[i]), std::to_string(s.operators[i].nodes)});
  text += columns(rows);
  if (shown < s.operators.size()) text += fmt::format("  {} more kinds (-v lists them)\n", s.operators.size() - shown);
  for (const std::string& function : s.functions) text += fmt::format("  function {}\n", function);

  text += fmt::format("\n{}\n", style.bold(fmt::format("Weights: {} tensors, {}", s.initializers + s.constants,
                                                       bytes_text(s.weight_bytes))));
  rows.clear();
  for (const auto& count : s.weights)
    rows.push_back({std::string(name_of(count.type)), fmt::format("{} tensors", count.tensors),
                    fmt::format("{} elements", count.elements), bytes_text(count.bytes)});
  text += columns(rows);
  for (const auto& file : s.external_files)
    text += fmt::format("  in {}: {} tensors, {}{}\n", file.location, file.tensors, bytes_text(file.bytes),
                        file.missing ? style.red(" (missing)") : "");

  if (facts.cost) text += fmt::format("\n{}\n{}", style.bold("Cost of a run"), columns(cost_rows(*facts.cost)));

  if (!s.metadata.empty()) {
    text += fmt::format("\n{}\n", style.bold("Metadata"));
    rows.clear();
    const std::size_t room = static_cast<std::size_t>(std::max(style.width, 60)) - 30;
    for (const auto& [key, value] : s.metadata)
      rows.push_back({key, context.verbosity > 0 ? value : shorten(value, room)});
    text += columns(rows);
  }
  if (!facts.weights.empty()) text += fmt::format("\n{}\n{}", style.bold("Tensors"), weights_text(facts.weights));
  return text;
}

std::string dims_text(const std::vector<std::int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

std::string weights_text(const std::vector<WeightRow>& weights) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(weights.size());
  for (const WeightRow& w : weights)
    rows.push_back({w.name, std::string(name_of(w.type)), dims_text(w.dims), bytes_text(w.bytes)});
  return columns(rows);
}

Json weights_json(const std::vector<WeightRow>& weights) {
  Json list = Json::array();
  for (const WeightRow& w : weights)
    list.push_back({{"name", w.name}, {"dtype", name_of(w.type)}, {"shape", w.dims}, {"bytes", w.bytes}});
  return list;
}

}  // namespace mk::cli
