#include "eval/compare_inputs.h"

#include <algorithm>

#include "runtime/npz.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

// What one input is for both models: a size known to one is known, and of two types the smaller, which the other holds.
Result<Port> merged(const Port& a, const Port& b) {
  Port port = a;
  if (!a.type.is_tensor() || !b.type.is_tensor())
    return fail(ErrorCode::unsupported, "input '" + a.name + "' is no tensor in one of the models");
  if (bits_of(b.type.element) < bits_of(a.type.element)) port.type.element = b.type.element;
  if (!a.type.shape) port.type.shape = b.type.shape;
  if (!a.type.shape || !b.type.shape) return port;
  const Error conflict{ErrorCode::failed,
                       "input '" + a.name + "' is " + to_string(a.type) + " in the candidate and " + to_string(b.type) +
                           " in the reference",
                       {},
                       "The two models must take the same inputs"};
  if (a.type.shape->size() != b.type.shape->size()) return tl::make_unexpected(conflict);
  for (std::size_t axis = 0; axis < a.type.shape->size(); ++axis) {
    const Dim& other = (*b.type.shape)[axis];
    Dim& dim = (*port.type.shape)[axis];
    if (dim.is_known() && other.is_known() && dim.value != other.value) return tl::make_unexpected(conflict);
    if (!dim.is_known() && (other.is_known() || dim.symbol.empty())) dim = other;
  }
  return port;
}

Result<std::vector<HostTensor>> in_types(const std::vector<HostTensor>& tensors,
                                         const std::map<std::string, DataType>& types) {
  std::vector<HostTensor> result;
  for (const HostTensor& tensor : tensors) {
    const auto type = types.find(tensor.name);
    if (type == types.end()) continue;
    MK_TRY(auto made, converted(tensor, type->second));
    result.push_back(std::move(made));
  }
  return result;
}

HostTensor rows_of(const HostTensor& whole, std::int64_t first, std::int64_t count) {
  HostTensor part{whole.name, whole.type, whole.dims, {}, {}};
  part.dims[0] = count;
  const std::size_t row = whole.data.size() / static_cast<std::size_t>(whole.dims[0]);
  const auto begin = whole.data.begin() + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(first));
  part.data.assign(begin, begin + static_cast<std::ptrdiff_t>(row * static_cast<std::size_t>(count)));
  return part;
}

}  // namespace

Result<CompareInputs> CompareInputs::make(const Session& candidate, const Session& reference,
                                          const std::map<std::string, ValueRange>& ranges,
                                          const CompareOptions& options, Progress& progress) {
  CompareInputs inputs(options.seed);
  std::vector<Port> ports;
  for (const Port& port : candidate.inputs()) {
    inputs.candidate_types_.emplace(port.name, port.type.element);
    const auto& others = reference.inputs();
    const auto other = std::find_if(others.begin(), others.end(), [&](const Port& p) { return p.name == port.name; });
    if (other == others.end()) {
      ports.push_back(port);
      continue;
    }
    MK_TRY(auto both, merged(port, *other));
    ports.push_back(std::move(both));
  }
  for (const Port& port : reference.inputs()) {
    inputs.reference_types_.emplace(port.name, port.type.element);
    if (!inputs.candidate_types_.contains(port.name)) ports.push_back(port);
  }
  if (options.input_data) {
    MK_CHECK(inputs.read_archive(*options.input_data, ports, progress));
    return inputs;
  }
  MK_TRY(auto chosen, choose_shapes(ports, options.shapes, 1));
  inputs.specs_ = std::move(chosen.inputs);
  apply_ranges(ranges, inputs.specs_);
  inputs.dynamic_ = std::move(chosen.dynamic);
  inputs.samples_ = options.samples;
  return inputs;
}

Status CompareInputs::read_archive(const Path& path, const std::vector<Port>& ports, Progress& progress) {
  MK_TRY(archive_, read_npz(path));
  MK_CHECK(check_names(archive_, ports, to_utf8(path)));
  for (const Port& port : ports)
    if (port.type.shape && !port.type.shape->empty() && (*port.type.shape)[0].is_known()) {
      batch_ = std::max<std::int64_t>(1, (*port.type.shape)[0].value);
      break;
    }
  std::int64_t rows = -1;
  for (const HostTensor& array : archive_) {
    if (array.dims.empty() || array.dims[0] == 0)
      return fail(ErrorCode::usage, "the array has no rows: its leading axis is the samples",
                  to_utf8(path) + ": " + array.name);
    if (rows >= 0 && array.dims[0] != rows)
      return fail(ErrorCode::usage,
                  "the arrays have " + std::to_string(rows) + " and " + std::to_string(array.dims[0]) + " rows",
                  to_utf8(path) + ": " + array.name, "The leading axis is the samples and must be the same");
    rows = array.dims[0];
  }
  samples_ = rows / batch_;
  if (samples_ == 0)
    return fail(ErrorCode::usage,
                "there are " + std::to_string(rows) + " rows, the model's batch is " + std::to_string(batch_),
                to_utf8(path));
  if (rows % batch_ != 0)
    progress.warn("the last " + std::to_string(rows % batch_) + " rows do not fill a batch of " +
                  std::to_string(batch_) + " and are left out");
  return {};
}

Result<CompareInputs::Pair> CompareInputs::next() {
  std::vector<HostTensor> tensors;
  if (archive_.empty()) {
    MK_TRY(tensors, random_inputs(specs_, random_));
  } else {
    for (const HostTensor& array : archive_) tensors.push_back(rows_of(array, position_, batch_));
    position_ += batch_;
  }
  MK_TRY(auto candidate, in_types(tensors, candidate_types_));
  MK_TRY(auto reference, in_types(tensors, reference_types_));
  return Pair{std::move(candidate), std::move(reference)};
}

}  // namespace mk
