#pragma once
// One vector of a sequence, as ELECTRA's and ConvBERT's SequenceSummary makes it.

#include <cstdint>
#include <string>

#include "models/family.h"

namespace mk::models {

struct SummaryConfig {
  std::string type;        // first, last, mean, cls_index
  std::string activation;  // none where empty
  bool projects = false;
  std::int64_t width = 0;  // of the projection
};
// What `defaults` says where the configuration says nothing. `labels` and `hidden_size` are what the projection may
// have as its width. unsupported for another type.
SummaryConfig read_summary(ConfigReader& fields, SummaryConfig defaults, std::int64_t labels, std::int64_t hidden_size);

// [batch, sequence, hidden_size] -> [batch, width].
Value summary(const Scope& s, const SummaryConfig& c, Value hidden);

}  // namespace mk::models
