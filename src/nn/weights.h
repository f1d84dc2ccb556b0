#pragma once
// The tensors of a checkpoint under the names that a model gives its parameters, and the account of them: which are
// used, which are tied to another, which are left over, missing or misshapen.
//
// Three name mappings, as from_pretrained has them: a base model's prefix put in front or taken away, names of older
// libraries (LayerNorm.gamma), and tied parameters. Data are views of the checkpoint, cast to the float type asked for.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "graph/tensor.h"

namespace mk::nn {

// A parameter of the model: its own name ("encoder.layer.0.attention.self.query.weight") and its data. `data` is null
// where the checkpoint does not have it as expected; status() tells.
struct Parameter {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;
  Bytes data;
  const QuantizedMatrix* quantized = nullptr;  // the same as codes, where the checkpoint has them
};

class Weights {
 public:
  // `base_prefix` is the attribute that holds the base model in a head ("bert"); `is_base` says that the model built is
  // the base model itself. The checkpoint must outlive this.
  Weights(const Checkpoint& checkpoint, DataType float_type, std::string_view base_prefix, bool is_base);

  // From now on parameters that the checkpoint does not have are taken as the model expects them, without data: to look
  // at a model whose weights are elsewhere.
  void assume_missing() { assumes_missing_ = true; }

  // The parameter of that name; one that is missing or of other dims is noted, and has no data.
  // The reference stays valid.
  const Parameter& get(std::string_view name, std::vector<std::int64_t> dims);
  bool has(std::string_view name) const;
  // The dims that the checkpoint has for it; null where it has none.
  const std::vector<std::int64_t>* dims(std::string_view name) const;

  // `name` is the same parameter as `original`, whatever the checkpoint has under it.
  // Ties come before what they name is asked for: the file may have kept only one of the two names.
  void tie(std::string_view name, std::string_view original);
  bool is_tied(const std::string& name) const { return originals_.contains(name); }

  // What `name` is where the checkpoint does not have it: a computed constant, as float32.
  void declare(std::string_view name, const Bytes& float32_values);

  // malformed, naming the first tensor that is missing or misshapen, and how many more there are.
  Status status() const;
  struct Mismatch {
    std::vector<std::int64_t> found, expected;
  };
  std::optional<Mismatch> first_mismatch() const;
  const std::vector<std::string>& missing() const { return missing_; }
  std::vector<std::string> unused() const;  // of the checkpoint's tensors; sorted
  const std::vector<std::string>& tied() const { return tied_; }
  // Tied names under which the checkpoint has other values than under the original's: what the model ignores.
  // Reads both, up to the first difference.
  Result<std::vector<std::pair<std::string, std::string>>> ties_that_differ() const;
  std::int64_t parameter_count() const { return parameter_count_; }

 private:
  enum class Prefix { same, added, removed };  // what the checkpoint's names need to become the model's
  struct Misshapen {
    std::string name;
    std::vector<std::int64_t> found, expected;
    const Tensor* tensor;
  };

  const Tensor* find(std::string_view name) const;
  const Tensor* find_mapped(std::string_view name) const;
  const Tensor* find_stored(std::string name) const;

  const Checkpoint& checkpoint_;
  DataType float_type_;
  std::string prefix_;  // "bert."; empty where the base model has no attribute
  Prefix mapping_ = Prefix::same;
  std::unordered_map<std::string, Parameter> parameters_;
  std::unordered_map<std::string, std::string> originals_;  // of tied names
  std::unordered_map<std::string, Bytes> declared_;
  std::unordered_set<const Tensor*> used_;
  std::vector<std::string> tied_;
  std::vector<std::string> missing_;
  std::vector<Misshapen> misshapen_;
  std::vector<Error> errors_;
  std::int64_t parameter_count_ = 0;
  bool assumes_missing_ = false;
};

}  // namespace mk::nn
