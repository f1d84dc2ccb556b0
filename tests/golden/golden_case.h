#pragma once
// A golden case: a tiny checkpoint, its module tree, inputs, and what PyTorch makes of them (tests/data/cases and
// tests/data/option_cases, one folder each).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "models/registry.h"
#include "runtime/host_tensor.h"

namespace mk::golden {

struct Case {
  Path folder;
  std::string name, task;
  double atol = 0, rtol = 0;
  double half_is_looser_by = 50;    // of graphs in half precision
  std::vector<HostTensor> inputs;   // integers as int32
  std::vector<HostTensor> outputs;  // those that the task's contract has
  std::vector<std::string> tags;    // all that the module tree allows
};

// Folders below tests/data/<group>, sorted.
std::vector<Path> case_folders(const std::string& group);
Result<Case> read_case(const Path& folder);
Result<std::vector<HostTensor>> read_tensors(const Path& file);

// The tags of a module tree: classes from the root down, torch.nn's left out, Class.N for items of a list.
struct TreeRow {
  std::string path, class_name;
  bool plain;
};
std::vector<std::string> tags_of(const std::vector<TreeRow>& rows);

// The case's graph. With `dynamic`, the batch and the sequence (of convolutional nets height and width, too) are
// symbols.
struct BuildRequest {
  bool dynamic = false;
  BuildOptions options;
};
Result<BuiltGraph> build(const Case& c, const BuildRequest& request = {});

// Runs a model of ours; outputs by name.
Result<std::map<std::string, HostTensor>> run(const Model& model, const std::vector<HostTensor>& inputs);

// Empty where all are within tolerance; else what is off.
std::string difference(const HostTensor& got, const HostTensor& want, double atol, double rtol);

}  // namespace mk::golden
