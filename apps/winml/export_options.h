#pragma once
// The layers that say what is exported, lowest first: the export section of -c, --export-config, then --input-specs,
// --dynamic-axes and --shape-config (spec: export, options).

#include <map>
#include <optional>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "export/export_config.h"
#include "winml/shared_options.h"

namespace mk::cli {

struct ExportLayers {
  ExportConfig config;
  std::map<std::string, std::int64_t> shapes;
  std::optional<std::string> task;  // loader.task of -c
};

Result<ExportLayers> read_export_layers(const std::optional<Path>& config, const ExportFiles& files,
                                        Progress& progress);
// The same above a base that is already there (the export section of a build config).
Status apply_export_files(ExportConfig& base, std::map<std::string, std::int64_t>& shapes, const ExportFiles& files,
                          Progress& progress);

}  // namespace mk::cli
