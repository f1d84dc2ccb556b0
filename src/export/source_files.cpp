#include "export/source_files.h"

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "graph/onnx_reader.h"
#include "hub/side_files.h"

namespace mk {
namespace {

Status add_side_files_of(const Path& folder, std::vector<Path>& files) {
  MK_TRY(const std::vector<Path> side_files, side_files_in(folder));
  for (const Path& side : side_files) files.push_back(folder / side);
  return {};
}

}  // namespace

Result<std::vector<Path>> checkpoint_files(const Path& folder) {
  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(folder));
  std::vector<Path> files = checkpoint.files();
  MK_CHECK(add_side_files_of(folder, files));
  return files;
}

Result<std::vector<Path>> onnx_files(const Path& onnx) {
  MK_TRY(const std::unique_ptr<Model> model, read_onnx(onnx));
  const Path folder = onnx.has_parent_path() ? onnx.parent_path() : Path(".");
  std::vector<Path> files{onnx};
  for (std::string location : model->external_locations) {
    std::ranges::replace(location, '\\', '/');
    files.push_back(folder / std::u8string(location.begin(), location.end()));
  }
  MK_CHECK(add_side_files_of(folder, files));
  return files;
}

Status keep_sources(std::span<const Path> sources, std::span<const Path> outputs) {
  for (const Path& output : outputs) {
    for (const Path& source : sources) {
      std::error_code ignored;
      if (!std::filesystem::equivalent(source, output, ignored)) continue;
      return fail(ErrorCode::usage, "the output would replace a file that it is made from", to_utf8(output),
                  "Choose another output with -o");
    }
  }
  return {};
}

}  // namespace mk
