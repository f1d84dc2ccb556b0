#include "models/summary.h"

#include <fmt/format.h>

#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

SummaryConfig read_summary(ConfigReader& fields, SummaryConfig c, std::int64_t labels, std::int64_t hidden_size) {
  c.type = fields.string("summary_type", c.type);
  c.activation =
      fields.string("summary_activation", fields.mentions("summary_activation") ? std::string() : c.activation);
  c.projects = fields.boolean("summary_use_proj", c.projects);
  c.width = fields.boolean("summary_proj_to_labels", false) ? labels : hidden_size;
  return c;
}

Value summary(const Scope& s, const SummaryConfig& c, Value hidden) {
  Value x;
  if (c.type == "first")
    x = take(s, hidden, 1, 0);
  else if (c.type == "last" || c.type == "cls_index")
    x = take(s, hidden, 1, -1);
  else if (c.type == "mean")
    x = reduce_mean(s, hidden, {1}, false);
  else
    s.builder().fail({ErrorCode::unsupported, fmt::format("summary_type \"{}\" is not supported", c.type),
                      "config.json", "first, last, mean and cls_index are"});
  if (c.projects) x = linear(s["summary"], x, c.width);
  return c.activation.empty() ? x : activation(s, "activation", c.activation, x);
}

}  // namespace mk::models
