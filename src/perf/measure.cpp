#include "perf/measure.h"

#include <algorithm>

#include "base/system.h"
#include "graph/onnx_reader.h"
#include "graph/precision.h"
#include "runtime/npz.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

// What the file itself says; a file that only the runtime can read has none of it.
struct FileFacts {
  std::int64_t opset = 0;
  std::optional<std::string> precision;
  std::map<std::string, ValueRange> ranges;
};

FileFacts read_facts(const Path& path, Progress& progress) {
  const auto model = read_onnx(path, {.require_external_data = false});
  if (!model) {
    progress.info("value ranges and precision are not known: " + model.error().to_string());
    return {};
  }
  return {(*model)->opset(), detected_precision(**model), value_ranges(**model)};
}

Result<std::vector<HostTensor>> inputs_from(const Path& archive, const Session& session, Progress& progress) {
  MK_TRY(auto arrays, read_npz(archive));
  MK_CHECK(check_names(arrays, session.inputs(), to_utf8(archive)));
  for (const Port& port : session.inputs()) {
    auto& array = *std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.name == port.name; });
    if (!port.type.is_tensor() || array.type == port.type.element) continue;
    progress.warn("'" + port.name + "' is " + std::string(name_of(array.type)) + " in " + to_utf8(archive) +
                  " and is cast to " + std::string(name_of(port.type.element)));
    MK_TRY(array, converted(array, port.type.element));
  }
  return arrays;
}

Error explained(Error error, const MeasureOptions& options) {
  if (error.code == ErrorCode::inference && error.hint.empty() && !options.input_data)
    error.hint =
        "Where the model does not take random inputs of these shapes, give shapes with --shape-config or real "
        "inputs with --input-data";
  return error;
}

}  // namespace

Result<PerfReport> measure(const std::shared_ptr<Runtime>& runtime, const MeasureOptions& options, Progress& progress,
                           const std::function<void(const PerfReport&)>& started) {
  const FileFacts facts = read_facts(options.model, progress);
  const MachineInfo machine = machine_info();
  PerfReport report;
  report.model_id = options.model_id;
  report.origin = options.origin;
  report.running_model_path = options.model;
  report.task = options.task;
  report.precision = options.precision;
  report.device = name_of(options.target.device);
  report.device_name = options.device ? options.device->hardware_name : machine.cpu_name;
  report.ep = options.target.ep->name;
  report.ep_short_name = options.target.ep->short_name();
  report.ep_source = options.device ? options.device->source : "bundled";
  report.ep_library = options.device ? std::optional(options.device->library) : std::nullopt;
  report.ep_version = options.device && !options.device->version.empty() ? options.device->version : runtime->version();
  report.ep_options = options.ep_options;
  report.warmup = options.loop.warmup;
  report.duration = options.loop.duration;
  report.batch_size = options.batch_size;
  report.timestamp = utc_timestamp();
  report.opset = facts.opset;
  report.detected_precision = facts.precision;

  SessionOptions session_options = options.session;
  if (options.device) {
    session_options.device = options.device->handle;
    session_options.ep_options = options.ep_options;
  }
  MemoryUse memory;
  release_freed_memory();
  memory.baseline = resident_bytes();
  MK_TRY(const auto session, Session::open(runtime, options.model, session_options));
  memory.after_compile = resident_bytes();
  report.inputs = session.inputs();
  report.outputs = session.outputs();

  std::vector<HostTensor> inputs;
  if (options.input_data) {
    MK_TRY(inputs, inputs_from(*options.input_data, session, progress));
  } else {
    MK_TRY(auto chosen, choose_shapes(session.inputs(), options.shapes, options.batch_size, progress));
    apply_ranges(facts.ranges, chosen.inputs);
    MK_TRY(inputs, random_inputs(chosen.inputs, options.seed));
    report.dynamic = std::move(chosen.dynamic);
  }
  for (const Port& port : session.inputs()) {
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const auto& t) { return t.name == port.name; });
    report.input_dims.push_back(input->dims);
  }
  report.effective_batch_size = effective_batch(inputs, options.batch_size);
  if (options.target.ep->short_name() == "dml" && !report.dynamic.empty())
    progress.warn(
        "dynamic dimensions are several times slower on DirectML; fix them with export --batch-size and "
        "--shape-config");
  if (started) started(report);

  MK_TRY(auto bound, session.bind(inputs));
  auto samples = run_loop(bound, options.loop, progress);
  if (!samples) return tl::make_unexpected(explained(std::move(samples).error(), options));
  memory.after_inference = resident_bytes();
  if (options.memory) report.memory = memory;
  report.latency = latency_statistics(samples->milliseconds, samples->warmup);
  report.samples_ms.assign(samples->milliseconds.begin() + static_cast<std::ptrdiff_t>(samples->warmup),
                           samples->milliseconds.end());
  return report;
}

}  // namespace mk
