#include "build/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/onnx_reader.h"
#include "runtime/input_shapes.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

Status check_output(const HostTensor& output, const Port& declared) {
  const auto bad = [&](const std::string& what) {
    return fail(ErrorCode::failed, "the model runs, but " + what, output.name, "--no-verify writes it all the same");
  };
  if (output.type != declared.type.element) {
    return bad(fmt::format("its output is {}, declared as {}", name_of(output.type), name_of(declared.type.element)));
  }
  if (declared.type.shape) {
    const Shape& shape = *declared.type.shape;
    bool agrees = shape.size() == output.dims.size();
    for (std::size_t i = 0; agrees && i < shape.size(); ++i)
      agrees = !shape[i].is_known() || shape[i].value == output.dims[i];
    if (!agrees)
      return bad(fmt::format("its output has shape {}, declared as {}", to_string(static_shape(output.dims)),
                             to_string(shape)));
  }
  if (!is_float(output.type)) return {};
  MK_TRY(const std::vector<double> values, float64_values(output));
  const auto wrong = std::ranges::count_if(values, [](double v) { return !std::isfinite(v); });
  if (wrong > 0) return bad(fmt::format("{} of {} values of its output are not finite", wrong, values.size()));
  return {};
}

}  // namespace

Result<std::string> check_run(const Path& model, const std::optional<Path>& ort,
                              const std::map<std::string, std::int64_t>& sizes, Progress& progress) {
  auto runtime = Runtime::load({.ort = ort, .progress = &progress});
  if (!runtime) {
    if (ort) return tl::make_unexpected(std::move(runtime).error());
    progress.warn("the result was not run: " + runtime.error().message + "; `winml sys` lists the places looked at");
    return "not run: no ONNX Runtime here";
  }
  MK_TRY(const Session session, Session::open(*runtime, model));
  auto chosen = choose_shapes(session.inputs(), {.shapes = {}, .symbols = sizes, .where = {}}, 1);
  if (!chosen) {  // a batch of none, inputs that are no tensors
    progress.warn("the result was not run: " + chosen.error().message);
    return "not run: no inputs can be drawn for it";
  }
  ChosenShapes& shapes = *chosen;
  MK_TRY(const std::unique_ptr<Model> graph, read_onnx(model));
  apply_ranges(value_ranges(*graph), shapes.inputs);
  MK_TRY(const std::vector<HostTensor> inputs, random_inputs(shapes.inputs));
  MK_TRY(const std::vector<HostTensor> outputs, session.run(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) MK_CHECK(check_output(outputs[i], session.outputs()[i]));
  return fmt::format("runs, {} finite", outputs.size() == 1 ? "output" : "outputs");
}

}  // namespace mk
