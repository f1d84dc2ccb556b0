#pragma once
// The labels of a data set in the numbering of a model.
//
// A class id of the data set becomes its name, and the name an id by a mapping: the user's, else the model's label2id.
// Names are compared in lower case. A name without an entry in the mapping is an error; an id that the model does not
// have removes the row, as a missing (null) label does; -1 says that the data set keeps its labels back, an error.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "checkpoint/config.h"
#include "datasets/cell.h"

namespace mk {

using LabelMapping = std::map<std::string, std::int64_t>;

// --label-mapping: a JSON object, name to id. usage for anything else.
Result<LabelMapping> read_label_mapping(const Path& path);

struct ModelLabels {
  std::map<std::int64_t, std::string> id2label;  // empty where the model does not say
  LabelMapping label2id;

  static Result<ModelLabels> read(const ModelConfig& config);
  bool has(std::int64_t id) const { return id2label.empty() ? id >= 0 : id2label.contains(id); }
  bool generic() const;  // LABEL_0, LABEL_1, ...: names that say nothing
};

class LabelAligner {
 public:
  // `class_names` are the data set's, empty where its labels are plain ids or texts. An id without a name is the
  // model's own, unless the user maps it ({"3": 0}).
  LabelAligner(std::vector<std::string> class_names, const std::optional<LabelMapping>& mapping, ModelLabels model);

  // The model's id; nothing where the row is to be left out. `where` names the row in errors.
  Result<std::optional<std::int64_t>> align(const Cell& label, std::string_view where) const;

 private:
  Result<std::optional<std::int64_t>> by_name(std::string_view name, std::string_view where) const;

  std::vector<std::string> class_names_;
  LabelMapping mapping_;  // names in lower case
  bool by_user_ = false;
  bool maps_ = false;
  ModelLabels model_;
};

}  // namespace mk
