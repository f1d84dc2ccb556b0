#pragma once
// What `winml eval` says: of a data set, of two models, or of what it needs to know of a task.

#include <optional>
#include <string>
#include <variant>

#include "base/json_fwd.h"
#include "eval/compare.h"
#include "eval/image_classification.h"
#include "runtime/target.h"
#include "winml/command.h"

namespace mk::cli {

// What was evaluated, and on what.
struct EvalSubject {
  std::optional<std::string> model_id;
  Path model_path;
  std::optional<std::string> task;
  std::string device = "auto";    // as asked for
  std::optional<std::string> ep;  // as asked for
  std::optional<Target> target;   // as found
  std::optional<Path> output_path;
};

struct DatasetEvaluation {
  std::string path;  // or id, as it was given
  std::optional<std::string> name;
  std::optional<std::string> revision;
  std::string split;
  RowChoice rows;
  KeyValues columns;
  std::optional<Path> label_mapping_file;
  ImageClassificationReport result;
};

struct ModelComparison {
  Path reference_path;
  std::optional<Path> input_data;
  CompareReport result;
};

struct EvalSchema {
  std::optional<std::string> task;  // else all
};

struct EvalReport {
  EvalSubject subject;
  std::variant<DatasetEvaluation, ModelComparison, EvalSchema> content;

  bool yes() const;  // false where models differ more than they may
};

Json eval_json(const EvalReport& report);
std::string eval_text(const EvalReport& report, const Style& style);

}  // namespace mk::cli
