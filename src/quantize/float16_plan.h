#pragma once
// Decides, without a change to the model, which nodes compute in float16 and which type each value then has.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "quantize/element_types.h"
#include "quantize/float16.h"

namespace mk {

class Float16Plan {
 public:
  enum class Treatment : std::uint8_t { neutral, convert, keep };  // neutral: no float32 tensor goes in or out

  Float16Plan(Model& model, ElementTypes& types, const Float16Options& options);
  void decide();

  Treatment treatment(const Node& node) const;
  // The type that the node takes there: float16 or float32; undefined where either will do, or it is no float32 tensor.
  DataType wanted(const Node& node, std::size_t input) const;
  DataType wanted_output(const Graph& graph, std::size_t output) const;
  // The type that a value will have; undefined where it was no float32 tensor.
  DataType produced(const Value& value) const;

  std::vector<Float16KeptNode> kept() const;  // in the order of the nodes
  std::size_t converted() const;
  // Whether the model tells infinite values from others, so that they must stay what they are.
  bool keeps_infinity() const { return keeps_infinity_; }

 private:
  struct NodePlan {
    Treatment treatment = Treatment::neutral;
    std::string reason;
    const OperatorTypes* schema = nullptr;
    std::uint32_t float32_inputs = 0, float32_outputs = 0;  // of a contrib operator, by bits
  };
  struct Wants {
    bool float16 = false, float32 = false;
  };

  void decide_graph(const Graph& graph, const std::string& kept_by);
  NodePlan decide_node(const Node& node, const std::string& kept_by);
  NodePlan decide_standard(const Node& node);
  bool touches_float32(const Node& node) const;
  bool is_blocked_by_name(const Node& node) const;
  void keep(const Node& node, std::string reason);

  void follow_integer_sums(const Node& node);
  void keep_angles();
  bool gathers_angle(const Node& node, std::vector<const Node*>& nodes) const;
  void keep_regions_between_integers();
  bool is_in_region(const Node& node, const std::unordered_set<const Node*>& region) const;
  void settle_quantizers(const Graph& graph);
  bool scale_survives(const Value* scale) const;

  void collect_wants(const Graph& graph);
  void settle_values(const Graph& graph);
  DataType settled(const Value& value) const;
  DataType node_output(const Node& node, const Value& value) const;
  DataType constant(const Value& value, const Tensor* tensor) const;

  Model& model_;
  ElementTypes& types_;
  const Float16Options& options_;
  std::unordered_set<std::string_view> blocked_ops_;
  std::unordered_set<std::string_view> blocked_names_;
  std::vector<std::string_view> blocked_globs_;
  std::unordered_map<const Node*, NodePlan> nodes_;
  std::vector<const Node*> order_;
  bool keeps_infinity_ = false;
  std::unordered_set<const Value*> integer_sums_;   // int32, of products; and what they are as float32
  std::unordered_set<const Value*> stored_scales_;  // constants: float16 in the file, float32 where they are used
  std::unordered_map<const Value*, Wants> wants_;
  std::unordered_map<const Value*, DataType> produced_;
};

// The tensor of an initializer that no caller can replace, or of a Constant node; null for other values.
const Tensor* constant_tensor(const Value& value);

}  // namespace mk
