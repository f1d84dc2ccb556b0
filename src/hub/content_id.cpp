#include "hub/content_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/publish.h"
#include "base/sha256.h"
#include "hub/hub_cache.h"

namespace mk {
namespace {

// Hashing less than this is faster than remembering it.
constexpr std::uint64_t smallest_remembered = 1u << 20;

// The first line of a record: all that tells this state of the file from another.
std::string state_of(const Path& path, const FileStamp& stamp) {
  return fmt::format("{} {} {} {} {}", stamp.size, stamp.modified_ns, stamp.changed_ns, stamp.inode, to_utf8(path));
}

std::chrono::nanoseconds age_of(const FileStamp& stamp) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now - std::chrono::nanoseconds(std::max(stamp.modified_ns, stamp.changed_ns));
}

std::optional<std::string> recall(const Path& record, const std::string& state) {
  const auto text = read_text(record, 1u << 16);
  constexpr std::size_t digits = 64;
  if (!text || text->size() != state.size() + 1 + digits || !text->starts_with(state + "\n")) return std::nullopt;
  return text->substr(state.size() + 1);
}

// What cannot be remembered is computed again.
void remember(const Path& record, const std::string& state, const std::string& hash) {
  Publication publication;
  if (publication.add_text(record, state + "\n" + hash, true)) (void)publication.commit();
}

}  // namespace

ContentIds ContentIds::from_environment() { return ContentIds(cache_root() / "hashes"); }

Result<std::string> ContentIds::sha256(const Path& path) const {
  if (std::string known = blob_sha256(path); !known.empty()) return known;
  MK_TRY(const auto file, File::open(path));
  if (file->size() < smallest_remembered) return sha256_hex(*file);

  std::error_code ignored;
  const Path absolute = std::filesystem::absolute(path, ignored);
  MK_TRY(const FileStamp before, file->stamp());
  const std::string state = state_of(absolute, before);
  const Path record = memory_ / sha256_hex(to_utf8(absolute)).substr(0, 32);
  if (const auto known = recall(record, state)) return *known;
  MK_TRY(std::string hash, sha256_hex(*file));
  MK_TRY(const FileStamp after, file->stamp());
  if (age_of(before) > settling_ && state == state_of(absolute, after)) remember(record, state, hash);
  return hash;
}

}  // namespace mk
