#include "hub/model_ref.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "checkpoint/gguf.h"

namespace mk {
namespace {

constexpr std::string_view forms_hint =
    "Give a model folder, an .onnx file, an id (name or org/name, with @revision) or org/repo/path/file.onnx";

bool is_letter_or_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && equal_ignoring_case(text.substr(text.size() - suffix.size()), suffix);
}
bool ends_with_onnx(std::string_view text) { return ends_with(text, ".onnx"); }
// What may be asked for of a repository by itself.
bool names_a_hub_file(std::string_view text) {
  const bool gguf = ends_with(text, ".gguf") && std::count(text.begin(), text.end(), '/') >= 2;
  return ends_with_onnx(text) || gguf;
}

// Written as a path of this machine, whether or not there is anything.
bool is_written_as_path(std::string_view text) {
  const bool has_drive =
      text.size() >= 2 && text[1] == ':' && is_letter_or_digit(text[0]) && (text[0] < '0' || text[0] > '9');
  return text.starts_with("./") || text.starts_with("../") || text.starts_with("/") || text.starts_with("~/") ||
         has_drive || text.find('\\') != std::string_view::npos;
}

// [A-Za-z0-9][A-Za-z0-9._-]*
bool is_id_part(std::string_view text) {
  return !text.empty() && is_letter_or_digit(text.front()) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

// A branch may have slashes (refs/pr/1); none may leave the cache's folder.
bool is_revision(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.back() != '/' && text.find("..") == std::string_view::npos &&
         text.find("//") == std::string_view::npos && std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-' || c == '/';
         });
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto slash = std::min(text.find('/'), text.size());
    if (slash > 0) parts.push_back(text.substr(0, slash));
    text.remove_prefix(std::min(slash + 1, text.size()));
  }
  return parts;
}

tl::unexpected<Error> missing_path(std::string_view text) {
  return fail(ErrorCode::not_found, fmt::format("the model path does not exist: {}", text), {},
              std::string(forms_hint));
}

Result<ModelRef> parse_local(ModelRef ref, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(ref.local_path, ignored);
  const bool checkpoint =
      std::filesystem::is_directory(status) || (std::filesystem::exists(status) && is_gguf(ref.local_path));
  if (checkpoint || ends_with_onnx(text)) {
    ref.kind = checkpoint ? ModelRefKind::folder : ModelRefKind::local_onnx;
    return ref;
  }
  if (std::filesystem::exists(status))
    return fail(ErrorCode::usage,
                fmt::format("unsupported model file: {}; only .onnx and .gguf files are models by themselves", text),
                {}, "Of a checkpoint, give the folder that has config.json");
  return missing_path(text);
}

// Cuts "name@revision"; false where what follows the "@" can be no revision.
bool take_revision(std::string_view& name, ModelRef& ref) {
  const auto at = name.find('@');
  if (at == std::string_view::npos) return true;
  ref.revision = name.substr(at + 1);
  name = name.substr(0, at);
  return is_revision(ref.revision);
}

tl::unexpected<Error> invalid_id(std::string_view text) {
  return fail(ErrorCode::usage, fmt::format("'{}' is no model id (name or org/name, with or without @revision)", text),
              {}, std::string(forms_hint));
}

Result<ModelRef> parse_hub_onnx(ModelRef ref, std::string_view text) {
  const auto parts = parts_of(text);
  if (parts.size() < 3)
    return fail(ErrorCode::not_found, fmt::format("there is no ONNX file {}", text), {}, std::string(forms_hint));
  std::string_view name = parts[1];
  const bool has_revision = take_revision(name, ref);
  ref.kind = ModelRefKind::hub_onnx;
  ref.id = fmt::format("{}/{}", parts[0], name);
  if (!has_revision || !is_model_id(ref.id)) return invalid_id(text);
  ref.file = fmt::format("{}", fmt::join(parts.begin() + 2, parts.end(), "/"));
  if (!stays_inside(path_from_utf8(ref.file))) return invalid_id(text);
  return ref;
}

}  // namespace

std::string_view name_of(ModelRefKind kind) {
  constexpr std::array<std::string_view, 4> names{"local_onnx", "build_dir", "hub_onnx", "hf_id"};
  return names[static_cast<std::size_t>(kind)];
}

bool is_model_id(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_id_part(text);
  return is_id_part(text.substr(0, slash)) && is_id_part(text.substr(slash + 1));
}

Result<ModelRef> parse_model_ref(std::string_view text) {
  if (is_blank(text)) return fail(ErrorCode::usage, "the model reference is empty", {}, std::string(forms_hint));
  ModelRef ref;
  ref.raw = text;
  std::error_code ignored;
  const Path path = path_from_utf8(text);
  if (is_written_as_path(text) || std::filesystem::exists(path, ignored)) {
    ref.local_path = path;
    return parse_local(std::move(ref), text);
  }
  if (names_a_hub_file(text)) return parse_hub_onnx(std::move(ref), text);

  std::string_view id = text;
  if (!take_revision(id, ref)) return invalid_id(text);
  if (std::count(id.begin(), id.end(), '/') > 1) return missing_path(text);
  if (!is_model_id(id)) return invalid_id(text);
  ref.id = id;
  return ref;
}

}  // namespace mk
