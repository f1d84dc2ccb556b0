#pragma once
// A pass: either patterns and what to make of a match, or a walk over the whole model. Both return patches; what a pass
// may change otherwise is said by PassRun.
//
// To add one: a file in passes/, a line in passes.cpp, and its golden cases beside it (passes/NAME.txt).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "optimize/matcher.h"
#include "optimize/node_index.h"
#include "optimize/patch.h"
#include "optimize/patch_applier.h"

namespace mk {

// Whether a match was rewritten; the reason where it was not, empty where it is none that a user would look for.
struct Outcome {
  bool done = false;
  std::string reason;
};
inline const Outcome fired{true, {}};
inline Outcome skip(std::string reason) { return {false, std::move(reason)}; }

struct NearMiss {
  std::string_view pass;
  std::string node;    // label
  std::string reason;  // why the pass did not fire there
};

// What a pass that walks the model by itself works with.
class PassRun {
 public:
  PassRun(std::string_view pass, Model& model, NodeIndex& index, PatchApplier& applier, std::vector<NearMiss>* misses)
      : pass_(pass), model_(model), index_(index), applier_(applier), misses_(misses) {}

  Model& model() { return model_; }
  const NodeIndex& index() const { return index_; }
  std::int64_t opset() const { return model_.opset(); }

  // New nodes stand before `anchor`. Whether the applier took it; `anchor` and others may be gone afterwards.
  bool apply(Patch patch, Node& anchor);
  // Values that may be unused now go, and what only they used.
  void sweep(std::vector<Value*> candidates) { applier_.sweep(std::move(candidates)); }
  void changed(std::size_t times = 1) { changes_ += times; }  // where it changed the model itself
  void miss(const Node& node, std::string reason);
  bool explains() const { return misses_ != nullptr; }
  std::size_t changes() const { return changes_; }

 private:
  std::string_view pass_;
  Model& model_;
  NodeIndex& index_;
  PatchApplier& applier_;
  std::vector<NearMiss>* misses_;
  std::size_t changes_ = 0;
};

struct Pass {
  std::string_view name;
  // A capability that users switch (spec: optimize, capability catalogue) has a category; a pass without one always
  // runs. Several passes may be one capability: `of` names it.
  std::string_view category;
  std::string_view summary;
  std::string_view of;
  bool by_default = false;
  std::string_view depends;  // a capability that is switched on with this one
  std::int64_t opset = 1;    // of ai.onnx, that its nodes need

  std::span<const std::string_view> patterns;
  Outcome (*rewrite)(const Match& match, Patch& patch) = nullptr;

  Status (*run)(PassRun& run) = nullptr;

  std::string_view capability() const { return of.empty() ? name : of; }
  bool is_switched() const { return !category.empty() || !of.empty(); }
};

}  // namespace mk
