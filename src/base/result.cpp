#include "base/result.h"

#include <array>

namespace mk {
namespace {

struct CodeRow {
  ErrorCode code;
  int exit;
  std::string_view name;
};

constexpr std::array rows{
    CodeRow{ErrorCode::negative, 1, "negative"},
    CodeRow{ErrorCode::failed, 1, "failed"},
    CodeRow{ErrorCode::exists, 1, "exists"},
    CodeRow{ErrorCode::usage, 2, "usage"},
    CodeRow{ErrorCode::not_found, 2, "not_found"},
    CodeRow{ErrorCode::malformed, 3, "malformed"},
    CodeRow{ErrorCode::unsupported, 3, "unsupported"},
    CodeRow{ErrorCode::inference, 4, "inference"},
    CodeRow{ErrorCode::interrupted, 130, "interrupted"},
};

const CodeRow& row_of(ErrorCode code) { return rows[static_cast<std::size_t>(code)]; }

}  // namespace

int exit_code(ErrorCode code) { return row_of(code).exit; }

std::string_view name_of(ErrorCode code) { return row_of(code).name; }

std::string Error::to_string() const {
  std::string text = message;
  if (!where.empty()) text += " (" + where + ")";
  if (!hint.empty()) text += ". " + hint;
  return text;
}

}  // namespace mk
