// What a run costs, for both kinds of model that are inspected.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "winml/inspect_graph.h"

namespace mk::cli {

std::string short_count(double count) {
  if (count < 1e3) return fmt::format("{:.0f}", count);
  if (count < 1e6) return fmt::format("{:.1f}K", count / 1e3);
  if (count < 1e9) return fmt::format("{:.1f}M", count / 1e6);
  return fmt::format("{:.1f}B", count / 1e9);
}

Json to_json(const GraphCost& cost) {
  return {{"macs", cost.macs},
          {"peak_activation_bytes", cost.peak_activation_bytes},
          {"assumed_dimensions", cost.assumed},
          {"unknown_nodes", cost.unknown_nodes}};
}

std::vector<std::vector<std::string>> cost_rows(const GraphCost& cost) {
  std::vector<std::vector<std::string>> rows{
      {"Multiply-accumulates", short_count(static_cast<double>(cost.macs))},
      {"Activations", bytes_text(cost.peak_activation_bytes) + " at most at once"}};
  if (!cost.assumed.empty()) rows.push_back({"Assumed", fmt::format("{} = 1", fmt::join(cost.assumed, ", "))});
  if (cost.unknown_nodes > 0)
    rows.push_back({"Not counted", fmt::format("{} nodes of unknown shape", cost.unknown_nodes)});
  return rows;
}

}  // namespace mk::cli
