#include "golden_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "graph/onnx_writer.h"
#include "runtime/session.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

// PyTorch's outputs that a task's contract may leave out.
constexpr std::array<std::string_view, 7> may_be_left_out{
    "pooler_output", "extract_features", "last_hidden_state", "encoder_last_hidden_state",
    "text_embeds",   "image_embeds",     "objectness_logits"};

bool is_convolutional(const Case& c) { return c.name.starts_with("resnet") || c.name.starts_with("convnext"); }

Shape symbolic_shape(const Case& c, const HostTensor& input) {
  Shape shape = static_shape(input.dims);
  const bool of_any_number = c.name.starts_with("owl") && shape.size() == 2;  // texts for each image
  shape[0] = Dim::symbolic(of_any_number ? "texts" : "batch");
  if (shape.size() == 2) shape[1] = Dim::symbolic("sequence");
  // A spectrogram is an image with positions; choices and boxes have sequences.
  if (shape.size() == 3 && input.name != "input_values" && input.name != "input_features")
    shape[input.name == "bbox" ? 1 : 2] = Dim::symbolic("sequence");
  if (shape.size() == 4 && is_convolutional(c)) {
    shape[2] = Dim::symbolic("height");
    shape[3] = Dim::symbolic("width");
  }
  return shape;
}

}  // namespace

Result<std::vector<HostTensor>> read_tensors(const Path& file) {
  MK_TRY(const Checkpoint all, Checkpoint::open_safetensors(file));
  std::vector<HostTensor> tensors;
  for (const auto& [name, tensor] : all.tensors()) {
    MK_TRY(std::vector<std::byte> bytes, read_all(*tensor.data));
    tensors.push_back({name, tensor.type, tensor.dims, std::move(bytes), {}});
  }
  return tensors;
}

std::vector<Path> case_folders(const std::string& group) {
  std::vector<Path> folders;
  for (const Path& name : list_folder(testing::repository("tests/data/" + group)).value_or(std::vector<Path>()))
    folders.push_back(testing::repository("tests/data/" + group) / name);
  return folders;
}

std::vector<std::string> tags_of(const std::vector<TreeRow>& rows) {
  std::map<std::string, std::string> tags;
  for (const TreeRow& row : rows) {
    if (row.plain && !row.path.empty()) continue;
    std::string above = row.path, last = row.path.substr(row.path.rfind('.') + 1);
    const std::string* parent = nullptr;
    while (!above.empty() && !parent) {
      const auto dot = above.rfind('.');
      above = dot == std::string::npos ? "" : above.substr(0, dot);
      const auto found = tags.find(above);
      parent = found == tags.end() ? nullptr : &found->second;
    }
    const bool item =
        !last.empty() && std::all_of(last.begin(), last.end(), [](char d) { return d >= '0' && d <= '9'; });
    tags[row.path] = (parent ? *parent : "") + "/" + row.class_name + (item ? "." + last : "");
  }
  std::vector<std::string> names;
  for (const auto& [path, tag] : tags) names.push_back(tag);
  return names;
}

Result<Case> read_case(const Path& folder) {
  MK_TRY(const Json json, read_json(folder / "case.json"));
  Case c;
  c.folder = folder;
  c.name = json.at("name");
  c.task = json.at("task");
  c.atol = json.at("atol");
  c.rtol = json.at("rtol");
  if (c.name.starts_with("sam")) c.half_is_looser_by = 2000;  // sines of many times a pixel's position
  MK_TRY(c.inputs, read_tensors(folder / "inputs.safetensors"));
  for (HostTensor& input : c.inputs) {
    if (input.type != DataType::int64) continue;
    MK_TRY(input, converted(input, DataType::int32));
  }
  MK_TRY(std::vector<HostTensor> outputs, read_tensors(folder / "outputs.safetensors"));
  MK_TRY(const ModelConfig config, ModelConfig::read(folder));
  // A task that only a pair of graphs serves has no head.
  const Result<HeadChoice> choice = choose_head(config, c.task);
  std::vector<std::string> given;
  if (choice) {
    MK_TRY(given, output_names(config, *choice));
  }
  for (HostTensor& output : outputs) {
    const bool left_out =
        std::find(may_be_left_out.begin(), may_be_left_out.end(), output.name) != may_be_left_out.end() &&
        std::find(given.begin(), given.end(), output.name) == given.end();
    if (!left_out) c.outputs.push_back(std::move(output));
  }
  MK_TRY(const Json modules, read_json(folder / "modules.json"));
  std::vector<TreeRow> rows;
  for (const Json& row : modules) rows.push_back({row.at(0), row.at(1), row.at(2)});
  c.tags = tags_of(rows);
  return c;
}

Result<BuiltGraph> build(const Case& c, const BuildRequest& request) {
  MK_TRY(const ModelConfig config, ModelConfig::read(c.folder));
  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(c.folder));
  MK_TRY(const HeadChoice choice, choose_head(config, c.task));
  std::vector<InputSpec> specs;
  for (const HostTensor& input : c.inputs)
    specs.push_back(
        {input.name, input.type, request.dynamic ? symbolic_shape(c, input) : static_shape(input.dims), {}});
  return build_graph(config, choice, checkpoint, specs, request.options);
}

Result<std::map<std::string, HostTensor>> run(const Model& model, const std::vector<HostTensor>& inputs) {
  static const Result<std::shared_ptr<Runtime>> runtime = Runtime::load();
  MK_CHECK(runtime);
  MK_TRY(const std::string bytes, serialize_onnx(model));
  MK_TRY(const Session session, Session::open_bytes(*runtime, bytes));
  MK_TRY(std::vector<HostTensor> outputs, session.run(inputs));
  std::map<std::string, HostTensor> by_name;
  for (HostTensor& output : outputs) {
    std::string name = output.name;
    by_name[std::move(name)] = std::move(output);
  }
  return by_name;
}

std::string difference(const HostTensor& got, const HostTensor& want, double atol, double rtol) {
  if (got.dims != want.dims)
    return fmt::format("{} has shape {}, want {}", want.name, to_string(static_shape(got.dims)),
                       to_string(static_shape(want.dims)));
  if (got.type != want.type) return fmt::format("{} is {}", want.name, name_of(got.type));
  const auto a = got.values<float>(), b = want.values<float>();
  constexpr float lowest_half = -65504;
  double worst = 0;
  bool off = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] <= lowest_half && b[i] <= lowest_half) continue;  // the lowest of either type: masked
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    worst = std::max(worst, std::isfinite(apart) ? apart : HUGE_VAL);
    off |= !(apart <= atol + rtol * std::abs(static_cast<double>(b[i])));
  }
  return off ? fmt::format("{} is off by {}", want.name, worst) : std::string();
}

}  // namespace mk::golden
