#include "base/system_error.h"

#include <array>
#include <cerrno>

namespace mk {
namespace {

struct Row {
  int code;
  ErrorCode kind;
  std::string_view reason;
  std::string_view hint;
};

constexpr std::string_view free_space = "Free some space, or choose another folder with -o";
constexpr std::string_view other_folder = "Choose another folder with -o";

constexpr std::array rows{
    Row{ENOSPC, ErrorCode::failed, "no space left on the disk", free_space},
#ifdef EDQUOT
    Row{EDQUOT, ErrorCode::failed, "the disk quota is used up", free_space},
#endif
    Row{EROFS, ErrorCode::failed, "the file system is read-only", other_folder},
    Row{EACCES, ErrorCode::failed, "permission denied", "Check the permissions of the file and its folder"},
    Row{EPERM, ErrorCode::failed, "operation not permitted", "Check the permissions of the file and its folder"},
    Row{EFBIG, ErrorCode::failed, "the file is too large for this file system", other_folder},
    Row{EIO, ErrorCode::failed, "the disk reports an input/output error", "Check the disk"},
    Row{EMFILE, ErrorCode::failed, "too many files are open", "Raise the limit (ulimit -n)"},
    Row{ENFILE, ErrorCode::failed, "too many files are open on this system", ""},
    Row{EBUSY, ErrorCode::failed, "the file is in use", ""},
    Row{EEXIST, ErrorCode::exists, "it already exists", "Re-run with --overwrite to replace it"},
    Row{ENOENT, ErrorCode::not_found, "no such file or folder", "Check the path"},
    Row{ENOTDIR, ErrorCode::not_found, "a part of the path is a file, not a folder", "Check the path"},
    Row{EISDIR, ErrorCode::not_found, "it is a folder, not a file", "Name a file"},
    Row{ENAMETOOLONG, ErrorCode::not_found, "the name is too long", "Choose a shorter name"},
    Row{ELOOP, ErrorCode::not_found, "the symbolic links lead in a circle", "Check the path"},
};

}  // namespace

Error system_error(std::error_code code, std::string_view action, const Path& path) {
  const std::error_condition condition = code.default_error_condition();
  Error error{.code = ErrorCode::failed, .message = std::string(action) + ": ", .where = to_utf8(path), .hint = {}};
  if (condition.category() == std::generic_category()) {
    for (const Row& row : rows) {
      if (row.code != condition.value()) continue;
      error.code = row.kind;
      error.message += row.reason;
      error.hint = row.hint;
      return error;
    }
  }
  error.message += code.message();
  return error;
}

}  // namespace mk
