#include "perf/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/system.h"
#include "graph/onnx_reader.h"
#include "graph/precision.h"
#include "graph/verifier.h"
#include "runtime/npz.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

// What the file itself says; a file of a kind that only the runtime can read has none of it.
struct FileFacts {
  std::int64_t opset = 0;
  std::optional<std::string> precision;
  std::map<std::string, ValueRange> ranges;
};

Result<FileFacts> read_facts(const Path& path, Progress& progress) {
  const auto model = read_onnx(path, {.require_external_data = false});
  if (!model && model.error().code == ErrorCode::malformed) return tl::make_unexpected(model.error());
  if (!model) {
    progress.info("value ranges and precision are not known: " + model.error().to_string());
    return FileFacts{};
  }
  return FileFacts{(*model)->opset(), detected_precision(**model), value_ranges(**model)};
}

// Why a session cannot be made: a fault of the model where we see one, else what the runtime says.
Error open_error(const Path& path, Error error) {
  if (error.code != ErrorCode::inference) return error;
  const auto model = read_onnx(path);
  if (!model) return model.error();
  if (const Status sound = verify(**model); !sound) return sound.error();
  return error;
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

// Inputs that contradict the model are the archive's fault.
Error input_error(Error error, const MeasureOptions& options) {
  if (!options.input_data) return error;
  return {ErrorCode::usage, std::move(error.message), to_utf8(*options.input_data), "Give arrays that the model takes"};
}

// Two sizes of one symbol, in words; empty where there are none.
std::string contradiction(std::span<const Port> ports, std::span<const HostTensor> inputs) {
  std::map<std::string, std::pair<std::string, std::int64_t>> known;
  for (const Port& port : ports) {
    const auto input = std::ranges::find(inputs, port.name, &HostTensor::name);
    if (input == inputs.end() || !port.type.shape || port.type.shape->size() != input->dims.size()) continue;
    for (std::size_t axis = 0; axis < input->dims.size(); ++axis) {
      const std::string& symbol = (*port.type.shape)[axis].symbol;
      if (symbol.empty()) continue;
      const auto [entry, added] = known.try_emplace(symbol, port.name, input->dims[axis]);
      if (entry->second.second != input->dims[axis])
        return fmt::format("'{}' is {} in '{}' and {} in '{}'", symbol, entry->second.second, entry->second.first,
                           input->dims[axis], port.name);
    }
  }
  return {};
}

Error explained(Error error, const MeasureOptions& options, const Session& session,
                std::span<const HostTensor> inputs) {
  if (error.code == ErrorCode::inference && options.input_data) {
    if (std::string why = contradiction(session.inputs(), inputs); !why.empty())
      return {ErrorCode::usage, std::move(why), to_utf8(*options.input_data), "Give arrays that the model takes"};
  }
  if (error.code == ErrorCode::inference && error.hint.empty() && !options.input_data)
    error.hint =
        "Where the model does not take random inputs of these shapes, give shapes with --shape-config or real "
        "inputs with --input-data";
  return error;
}

}  // namespace

Result<PerfReport> measure(const std::shared_ptr<Runtime>& runtime, const MeasureOptions& options, Progress& progress,
                           const std::function<void(const PerfReport&)>& started) {
  MK_TRY(const FileFacts facts, read_facts(options.model, progress));
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
  const auto session = Session::open(runtime, options.model, session_options);
  if (!session) return tl::make_unexpected(open_error(options.model, session.error()));
  memory.after_compile = resident_bytes();
  report.inputs = session->inputs();
  report.outputs = session->outputs();

  std::vector<HostTensor> inputs;
  if (options.input_data) {
    MK_TRY(inputs, inputs_from(*options.input_data, *session, progress));
  } else {
    MK_TRY(auto chosen, choose_shapes(session->inputs(), options.shapes, options.batch_size));
    apply_ranges(facts.ranges, chosen.inputs);
    MK_TRY(inputs, random_inputs(chosen.inputs, options.seed));
    report.dynamic = std::move(chosen.dynamic);
  }
  auto bound = session->bind(inputs);
  if (!bound) return tl::make_unexpected(input_error(std::move(bound).error(), options));
  for (const Port& port : session->inputs()) {
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const auto& t) { return t.name == port.name; });
    report.input_dims.push_back(input->dims);
  }
  report.effective_batch_size = effective_batch(inputs, options.batch_size);
  if (options.target.ep->short_name() == "dml" && !report.dynamic.empty())
    progress.warn(
        "dynamic dimensions are several times slower on DirectML; fix them with export --batch-size and "
        "--shape-config");
  if (started) started(report);

  auto samples = run_loop(*bound, options.loop, progress);
  if (!samples) return tl::make_unexpected(explained(std::move(samples).error(), options, *session, inputs));
  memory.after_inference = resident_bytes();
  if (options.memory) report.memory = memory;
  report.latency = latency_statistics(samples->milliseconds, samples->warmup);
  report.samples_ms.assign(samples->milliseconds.begin() + static_cast<std::ptrdiff_t>(samples->warmup),
                           samples->milliseconds.end());
  return report;
}

}  // namespace mk
