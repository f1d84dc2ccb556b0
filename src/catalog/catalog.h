#pragma once
// Models that are known to work, and where (spec: catalog-inspect-sys, part A). The rows are in the contract's order.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ep_table.h"

namespace mk {

// One execution provider and the devices of it that the model was validated on.
struct CatalogSupport {
  std::string_view key;                              // as the catalogue writes it: "qnn", "trtrtx"
  std::string_view ep;                               // short name in the EP table: "nvtensorrtrtx"
  std::array<std::optional<DeviceKind>, 3> devices;  // in the catalogue's order

  bool has(DeviceKind device) const;
};

struct CatalogEntry {
  std::string_view model_id;
  std::string_view onnx_path;  // in the model's repository; empty where it is a checkpoint
  std::string_view task;
  std::string_view model_type;
  double size_mb = 0;
  std::span<const CatalogSupport> support;
};

std::span<const CatalogEntry> catalog();

// All that are set must hold. Names compare without case; `ep` and `device` must meet in one execution provider.
struct CatalogFilter {
  std::optional<std::string> model_type, task;
  const ExecutionProvider* ep = nullptr;
  std::optional<DeviceKind> device;
};
std::vector<const CatalogEntry*> find_in_catalog(const CatalogFilter& filter);

}  // namespace mk
