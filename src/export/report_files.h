#pragma once
// The two reports of --with-report (spec: export, reports): {stem}_htp_metadata.json and {stem}_htp_export_report.md.

#include <string>

#include "base/json_fwd.h"
#include "export/export.h"

namespace mk {

// Facts that the reports need beside the graph.
struct ReportFacts {
  std::string model_id;
  Path output;
  std::uint64_t model_bytes = 0;
  double seconds = 0;
  std::string timestamp;  // ISO-8601, UTC
  bool tags_embedded = true;
};

Json metadata_report(const ExportedGraph& exported, const ReportFacts& facts);
std::string markdown_report(const ExportedGraph& exported, const ReportFacts& facts);

}  // namespace mk
