#pragma once
// What a family of architectures is to the registry: its model type, its heads and the rule of its inputs. A family's
// file has its configuration, its modules as functions that emit nodes, and one Family per model type.

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/config_reader.h"
#include "models/registry.h"
#include "nn/builder.h"

namespace mk::models {

using nn::Scope;
using nn::Value;

struct Family;

// What a head is built from.
struct HeadContext {
  const Family& family;
  std::string_view task;
  ConfigReader config;
  std::map<std::string, Value, std::less<>> inputs;

  Value input(std::string_view name) const;  // empty where the graph has no such input
};

using Outputs = std::vector<Value>;
using BuildHead = Outputs (*)(const Scope& root, HeadContext& context);

struct InputRequest;
using DefaultInputs = Result<std::vector<InputSpec>> (*)(InputRequest& request);

// One row of a family: a task, the class that serves it (the family's stem and this suffix) and its outputs.
struct Head {
  std::string_view task;
  std::string_view suffix;
  std::vector<std::string_view> outputs;  // "present.{}.key": one per layer, with those that follow it
  BuildHead build;
  DefaultInputs inputs = nullptr;  // the family's where null
  bool only_in_composite = false;  // no task of its own: chosen as a component, by its class

  bool is_base() const { return suffix == "Model" || suffix == "TextModel"; }  // not a head on a base model
};

// One graph of several that a model is exported as ("encoder", "decoder"): a row of the heads, by task and suffix.
struct Component {
  std::string_view name;
  std::string_view task;
  std::string_view suffix;
};

// The graphs that serve a pipeline together, in their order, and the tasks that name them ("translation").
struct Composite {
  std::vector<std::string_view> tasks;
  std::vector<Component> components;
};

struct InputRequest {
  const Family& family;
  const Head& head;
  ConfigReader config;
  std::string_view task;
  const ShapeRequest& shapes;
  const PreprocessorFacts& preprocessor;
};

struct Family {
  std::string_view model_type;  // "xlm-roberta"
  std::string_view stem;        // "XLMRoberta"
  std::string_view prefix;      // "roberta"
  // All inputs that the family's graphs can take; "past_key_values.{}.key" stands for one per layer.
  std::vector<std::string_view> inputs;
  // Those of a task, with default shapes and value ranges.
  DefaultInputs default_inputs;
  std::vector<Head> heads;
  std::vector<Composite> composites = {};
  // How many layers have an output of each of the names with {}.
  std::int64_t (*cached_layers)(ConfigReader& config) = nullptr;
  // Integer inputs that a graph has only where they are asked for.
  std::vector<std::string_view> optional = {};
};

// Whether a name is the pattern's, with a number in the place of {}.
bool matches(std::string_view pattern, std::string_view name);
// A row's names with {} written out for each layer.
std::vector<std::string> expand(const std::vector<std::string_view>& patterns, std::int64_t layers);

// The row of a resolved head. usage where the class does not serve the task.
struct Chosen {
  const Family* family;
  const Head* head;
};
Result<Chosen> find_head(const ModelConfig& config, const HeadChoice& choice);

// A head's function as a row's builder: `head<masked_lm>` for
//   Outputs masked_lm(const Scope& root, const BertConfig& c, const TextInputs& in);
// whose configuration and inputs have a static read(). A variant that reads its configuration otherwise says so:
// `head<masked_lm, RobertaConfig>`.
template <typename Other, typename Config, typename Inputs>
Outputs build_head(Outputs (*function)(const Scope&, const Config&, const Inputs&), const Scope& root,
                   HeadContext& context) {
  using Read = std::conditional_t<std::is_void_v<Other>, Config, Other>;
  const Read config = Read::read(context.family, context.config);
  const Inputs inputs = Inputs::read(root, context);
  if (!context.config.status()) root.builder().fail(context.config.status().error());
  if (!root.builder().ok()) return {};
  return function(root, config, inputs);
}
template <auto function, typename Other = void>
Outputs head(const Scope& root, HeadContext& context) {
  return build_head<Other>(function, root, context);
}

}  // namespace mk::models
