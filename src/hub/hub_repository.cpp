#include "hub/hub_repository.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/path.h"
#include "hub/hub_cache.h"

namespace mk {
namespace {

constexpr std::size_t largest_answer = 64u << 20;

class TextBody final : public HubBody {
 public:
  std::uint64_t offset() const override { return 0; }
  Status begin(const HttpResponse&) override {
    text_.clear();
    return {};
  }
  Status data(std::span<const std::byte> bytes) override {
    if (text_.size() + bytes.size() > largest_answer)
      return fail(ErrorCode::malformed, "the Hub's answer is longer than any of its answers");
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  bool whole() const override { return true; }
  Status restart() override { return {}; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// As one segment of an address: "refs/pr/1" is "refs%2Fpr%2F1".
std::string as_segment(std::string_view text) {
  std::string encoded;
  for (const char c : percent_encoded(text)) c == '/' ? encoded += "%2F" : encoded += c;
  return encoded;
}

// A name that could lead out of the snapshot, or that means something else on another system, is no file of ours.
bool is_usable(std::string_view name) {
  return !name.empty() && name.front() != '/' && name.find('\\') == std::string_view::npos &&
         name.find(':') == std::string_view::npos && name.find('\0') == std::string_view::npos &&
         name.find("//") == std::string_view::npos && name.front() != '~' && stays_inside(path_from_utf8(name));
}

std::optional<std::uint64_t> size_at(const JsonView& view) {
  const auto size = view.integer();
  return size && *size >= 0 ? std::optional(static_cast<std::uint64_t>(*size)) : std::nullopt;
}

}  // namespace

const HubFile* HubRepositoryInfo::find(std::string_view name) const {
  const auto found = std::lower_bound(files.begin(), files.end(), name,
                                      [](const HubFile& file, std::string_view wanted) { return file.name < wanted; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

std::string file_address(std::string_view id, std::string_view commit, std::string_view name) {
  return fmt::format("/{}/resolve/{}/{}", percent_encoded(id), as_segment(commit), percent_encoded(name));
}

Result<HubRepositoryInfo> parse_repository(std::string_view text, const std::string& where) {
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::malformed, fmt::format("the Hub's answer about the repository {}", what), where,
                "Check HF_ENDPOINT");
  };
  const auto json = parse_json(text, where);
  if (!json) return bad("is no JSON");
  const JsonView root(*json, where);
  HubRepositoryInfo info;
  const auto commit = root.at("sha").string();
  if (!commit || !is_commit(*commit)) return bad("names no commit");
  info.commit = *commit;
  const JsonView siblings = root.at("siblings");
  if (!siblings.is_array()) return bad("lists no files");
  for (std::size_t i = 0; i < siblings.size(); ++i) {
    const JsonView row = siblings.at(i);
    const auto name = row.at("rfilename").string();
    if (!name || !is_usable(*name)) continue;
    HubFile file{.name = *name, .etag = {}, .size = size_at(row.at("size"))};
    const JsonView lfs = row.at("lfs");
    if (const auto sha256 = lfs.at("sha256").string()) {
      file.etag = *sha256;
      if (const auto size = size_at(lfs.at("size"))) file.size = size;
    } else if (const auto blob = row.at("blobId").string(); blob && lfs.is_null()) {
      file.etag = *blob;
    }
    if (!is_blob_name(file.etag)) file.etag.clear();
    info.files.push_back(std::move(file));
  }
  std::sort(info.files.begin(), info.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return info;
}

Result<HubRepositoryInfo> ask_repository(HubConnection& connection, std::string_view id, std::string_view revision) {
  TextBody body;
  const std::string path =
      fmt::format("/api/models/{}/revision/{}?blobs=true", percent_encoded(id), as_segment(revision));
  const HubSubject subject{std::string(id), std::string(revision), {}};
  MK_CHECK(connection.get(path, subject, body));
  return parse_repository(body.text(), std::string(id));
}

}  // namespace mk
