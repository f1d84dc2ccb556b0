#include "nn/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace mk::nn {
namespace {

struct Renamed {
  std::string_view now, before;
};

// Endings of names that older libraries wrote.
constexpr std::array legacy_endings{
    Renamed{"LayerNorm.weight", "LayerNorm.gamma"},
    Renamed{"LayerNorm.bias", "LayerNorm.beta"},
    Renamed{"parametrizations.weight.original0", "weight_g"},
    Renamed{"parametrizations.weight.original1", "weight_v"},
};

// Modules that have moved since.
constexpr std::array moved_modules{
    Renamed{"model.language_model.", "language_model.model."},
    Renamed{"lm_head.", "language_model.lm_head."},
};

// Buffers that some checkpoints carry and no graph needs.
constexpr std::array<std::string_view, 5> known_buffers{"position_ids", "num_batches_tracked", "rotary_emb.inv_freq",
                                                        ".attn.bias", ".attn.masked_bias"};

std::string file_of(const Tensor& tensor) {
  const auto range = tensor.data ? tensor.data->file_range() : std::nullopt;
  return range && range->file ? to_utf8(range->file->path()) : std::string();
}

Result<bool> same_bytes(const ByteSource& a, const ByteSource& b) {
  if (a.size() != b.size()) return false;
  constexpr std::uint64_t block = 1u << 20;
  std::vector<std::byte> left(std::min(block, a.size())), right(left.size());
  for (std::uint64_t at = 0; at < a.size(); at += block) {
    const std::size_t count = static_cast<std::size_t>(std::min(block, a.size() - at));
    MK_CHECK(a.read(at, std::span(left).first(count)));
    MK_CHECK(b.read(at, std::span(right).first(count)));
    if (!std::equal(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count), right.begin())) return false;
  }
  return true;
}

std::string listed(const std::vector<std::int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

}  // namespace

Weights::Weights(const Checkpoint& checkpoint, DataType float_type, std::string_view base_prefix, bool is_base)
    : checkpoint_(checkpoint), float_type_(float_type), prefix_(base_prefix) {
  if (prefix_.empty()) return;
  prefix_ += '.';
  const auto& tensors = checkpoint.tensors();
  const auto first = tensors.lower_bound(prefix_);
  const bool in_checkpoint = first != tensors.end() && first->first.starts_with(prefix_);
  if (is_base && in_checkpoint) mapping_ = Prefix::removed;
  if (!is_base && !in_checkpoint) mapping_ = Prefix::added;
}

const Tensor* Weights::find_stored(std::string name) const {
  if (const Tensor* tensor = checkpoint_.find(name)) return tensor;
  for (const Renamed& ending : legacy_endings) {
    if (!name.ends_with(ending.now)) continue;
    name.replace(name.size() - ending.now.size(), ending.now.size(), ending.before);
    return checkpoint_.find(name);
  }
  return nullptr;
}

const Tensor* Weights::find_mapped(std::string_view name) const {
  if (mapping_ == Prefix::removed) return find_stored(prefix_ + std::string(name));
  if (mapping_ == Prefix::added && name.starts_with(prefix_))
    return find_stored(std::string(name.substr(prefix_.size())));
  return find_stored(std::string(name));
}

const Tensor* Weights::find(std::string_view name) const {
  if (const Tensor* tensor = find_mapped(name)) return tensor;
  for (const Renamed& moved : moved_modules)
    if (name.starts_with(moved.now))
      return checkpoint_.find(fmt::format("{}{}", moved.before, name.substr(moved.now.size())));
  return nullptr;
}

bool Weights::has(std::string_view name) const { return find(name) != nullptr; }

const std::vector<std::int64_t>* Weights::dims(std::string_view name) const {
  const Tensor* tensor = find(name);
  return tensor ? &tensor->dims : nullptr;
}

const Parameter& Weights::get(std::string_view name, std::vector<std::int64_t> dims) {
  if (const auto tied = originals_.find(std::string(name)); tied != originals_.end())
    return get(std::string(tied->second), std::move(dims));
  const auto [entry, added] = parameters_.try_emplace(std::string(name));
  Parameter& parameter = entry->second;
  if (!added && parameter.dims == dims) return parameter;

  parameter.name = name;
  const Tensor* tensor = find(name);
  if (!tensor) {  // the file may have kept the other name of a tied parameter
    for (const auto& [other, original] : originals_)
      if (original == name && (tensor = find(other))) break;
  }
  if (const auto declared = declared_.find(parameter.name); !tensor && declared != declared_.end()) {
    parameter.dims = std::move(dims);
    parameter.type = float_type_;
    parameter.data = cast(declared->second, DataType::float32, float_type_);
    return parameter;
  }
  if (!tensor) {
    parameter.dims = std::move(dims);
    parameter.type = float_type_;
    if (added && assumes_missing_)
      parameter_count_ +=
          static_cast<std::int64_t>(make_tensor({}, float_type_, parameter.dims, nullptr).element_count());
    else if (added)
      missing_.emplace_back(name);
    return parameter;
  }
  if (used_.insert(tensor).second) parameter_count_ += static_cast<std::int64_t>(tensor->element_count());
  parameter.type = float_type_;
  const bool misshapen = tensor->dims != dims;
  if (misshapen) misshapen_.push_back({parameter.name, tensor->dims, dims, tensor});
  parameter.dims = std::move(dims);
  if (misshapen) return parameter;
  parameter.data = tensor->data;
  parameter.quantized = checkpoint_.quantized(tensor->name);
  if (tensor->type == float_type_) return parameter;
  switch (tensor->type) {
    case DataType::float64:
    case DataType::float32:
    case DataType::float16:
    case DataType::bfloat16:
      parameter.data = cast(tensor->data, tensor->type, float_type_);
      break;
    default:
      if (added)
        errors_.push_back(
            {ErrorCode::unsupported,
             fmt::format("{} is stored as {}, which is not a type of plain weights", name, name_of(tensor->type)),
             file_of(*tensor), "Export a checkpoint with float32, float16 or bfloat16 weights"});
      parameter.data = nullptr;
  }
  return parameter;
}

void Weights::tie(std::string_view name, std::string_view original) {
  if (name == original || !originals_.try_emplace(std::string(name), original).second) return;
  tied_.emplace_back(name);
  if (const Tensor* copy = find(name)) used_.insert(copy);
}

void Weights::declare(std::string_view name, const Bytes& float32_values) {
  declared_.try_emplace(std::string(name), float32_values);
}

Status Weights::status() const {
  if (!misshapen_.empty()) {
    const Misshapen& first = misshapen_.front();
    std::string message =
        fmt::format("{} has shape {}, expected {}", first.name, listed(first.found), listed(first.expected));
    if (misshapen_.size() > 1) message += fmt::format(", and {} more tensors differ", misshapen_.size() - 1);
    return fail(ErrorCode::malformed, std::move(message), file_of(*first.tensor));
  }
  if (!missing_.empty()) {
    std::string message = missing_.front();
    if (missing_.size() == 2) message += " and " + missing_.back();
    if (missing_.size() > 2) message += fmt::format(" and {} more tensors", missing_.size() - 1);
    message += missing_.size() == 1 ? " is not in the checkpoint" : " are not in the checkpoint";
    return fail(ErrorCode::malformed, std::move(message),
                checkpoint_.files().empty() ? std::string() : to_utf8(checkpoint_.files().front()));
  }
  if (!errors_.empty()) return tl::make_unexpected(errors_.front());
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> Weights::ties_that_differ() const {
  std::vector<std::pair<std::string, std::string>> different;
  for (const std::string& name : tied_) {
    const std::string& original = originals_.at(name);
    const Tensor* const a = find(name);
    const Tensor* const b = find(original);
    if (a == nullptr || b == nullptr || a == b || !is_float(a->type) || !is_float(b->type)) continue;
    bool same = a->dims == b->dims;
    if (same) {
      MK_TRY(same, same_bytes(*cast(a->data, a->type, float_type_), *cast(b->data, b->type, float_type_)));
    }
    if (!same) different.emplace_back(name, original);
  }
  return different;
}

std::optional<Weights::Mismatch> Weights::first_mismatch() const {
  if (misshapen_.empty()) return std::nullopt;
  return Mismatch{misshapen_.front().found, misshapen_.front().expected};
}

std::vector<std::string> Weights::unused() const {
  std::vector<std::string> names;
  for (const auto& entry : checkpoint_.tensors()) {
    const std::string& name = entry.first;
    const bool buffer = std::any_of(known_buffers.begin(), known_buffers.end(),
                                    [&](std::string_view ending) { return name.ends_with(ending); });
    if (!buffer && !used_.contains(&entry.second)) names.push_back(name);
  }
  return names;
}

}  // namespace mk::nn
