#include "hub/hub_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <system_error>

#include "base/partial_file.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "base/staging.h"

namespace mk {
namespace {

constexpr std::size_t sha256_digits = 64, sha1_digits = 40;

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// "1.2 GB": in powers of 1000, as the Hub shows them.
std::string size_text(double bytes) {
  constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

// "bytes 100-199/200": where the part begins, and how long the whole is (where it says so).
struct ContentRange {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> total;
};
std::optional<ContentRange> parse_range(std::string_view text) {
  constexpr std::string_view unit = "bytes ";
  if (!text.starts_with(unit)) return std::nullopt;
  text.remove_prefix(unit.size());
  ContentRange range;
  const char* const end = text.data() + text.size();
  const auto begun = std::from_chars(text.data(), end, range.begin);
  if (begun.ec != std::errc()) return std::nullopt;
  const auto slash = text.find('/');
  std::uint64_t total = 0;
  if (slash != std::string_view::npos && std::from_chars(text.data() + slash + 1, end, total).ec == std::errc())
    range.total = total;
  return range;
}

// The file that grows, its hash and its progress.
class FileBody final : public HubBody {
 public:
  FileBody(PartialFile file, const HubFile& wanted, Stage& stage)
      : file_(std::move(file)), wanted_(wanted), size_(wanted.size), stage_(stage) {}

  // Takes what an earlier run left.
  Status resume() {
    if (size_ && file_.size() > *size_) return restart();
    if (file_.size() == 0 || !hashes()) return {};
    MK_TRY(const auto earlier, File::open(file_.path()));
    constexpr std::uint64_t block_bytes = 1 << 20;
    const auto block = std::make_unique_for_overwrite<std::byte[]>(block_bytes);
    for (std::uint64_t at = 0; at < file_.size();) {
      const std::span part(block.get(), static_cast<std::size_t>(std::min(block_bytes, file_.size() - at)));
      MK_CHECK(earlier->read(at, part));
      hash_->update(part);
      at += part.size();
    }
    return {};
  }

  std::uint64_t offset() const override { return file_.size(); }
  std::uint64_t received() const { return received_; }
  bool whole() const override { return !size_ || file_.size() == *size_; }
  bool is_known_to_be_whole() const { return size_ && file_.size() == *size_; }

  Status begin(const HttpResponse& response) override {
    if (response.status == 206) {
      const auto range = parse_range(response.header("content-range"));
      if (!range || range->begin != file_.size())
        return fail(ErrorCode::failed,
                    fmt::format("the host sent another part of {} than was asked for", wanted_.name));
      if (!size_) size_ = range->total;
      return {};
    }
    MK_CHECK(restart());
    if (!size_) {
      std::uint64_t length = 0;
      const std::string_view text = response.header("content-length");
      if (std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc()) size_ = length;
    }
    return {};
  }

  Status data(std::span<const std::byte> bytes) override {
    if (size_ && bytes.size() > *size_ - file_.size()) {
      MK_CHECK(restart());
      return fail(ErrorCode::failed,
                  fmt::format("the host sends more than the {} bytes that the Hub says {} has", *size_, wanted_.name),
                  {}, "A proxy or a mirror may change files on their way");
    }
    MK_CHECK(file_.append(bytes));
    if (hashes()) hash_->update(bytes);
    received_ += bytes.size();
    stage_.update(file_.size(), size_.value_or(0));
    return {};
  }

  Status restart() override {
    if (hashes()) hash_.emplace();
    return file_.size() == 0 ? Status() : file_.clear();
  }

  // Whether the content is what its name says; a name that is no hash says nothing.
  Result<bool> is_right() {
    MK_CHECK(file_.sync());
    if (hashes()) return hash_->hex() == wanted_.etag;
    if (wanted_.etag.size() != sha1_digits || !is_blob_name(wanted_.etag)) return true;
    MK_TRY(const auto file, File::open(file_.path()));
    MK_TRY(const std::string hash, git_blob_hex(*file));
    return hash == wanted_.etag;
  }

 private:
  bool hashes() const { return wanted_.etag.size() == sha256_digits && is_blob_name(wanted_.etag); }

  PartialFile file_;
  const HubFile& wanted_;
  std::optional<std::uint64_t> size_;
  Stage& stage_;
  std::optional<Sha256> hash_{std::in_place};  // of what file_ holds, where hashes()
  std::uint64_t received_ = 0;
};

Status check_room(const Path& folder, const HubFile& file, std::uint64_t there) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  const std::uint64_t needed = file.size.value_or(0) - std::min(there, file.size.value_or(0));
  if (error || needed <= space.available) return {};
  return fail(ErrorCode::failed,
              fmt::format("no room for {}: {} are needed, {} are free", file.name,
                          size_text(static_cast<double>(needed)), size_text(static_cast<double>(space.available))),
              to_utf8(folder), "Make room, or set HF_HOME or HF_HUB_CACHE to another disk");
}

Status fetch_blob(const HubDownload& wanted, const Path& place, const Path& final_path, HubConnection& connection,
                  Stage& stage) {
  const HubFile& file = wanted.file;
  MK_TRY(PartialFile partial, PartialFile::open(place));
  MK_CHECK(check_room(partial.path().parent_path(), file, partial.size()));
  FileBody body(std::move(partial), file, stage);
  MK_CHECK(body.resume());
  const HubSubject subject{wanted.id, wanted.commit, file.name};
  const std::string address = file_address(wanted.id, wanted.commit, file.name);
  const auto start = std::chrono::steady_clock::now();
  bool right = false;
  for (int tried = 0; tried < 2 && !right; ++tried) {
    if (!body.is_known_to_be_whole()) MK_CHECK(connection.get(address, subject, body));
    MK_TRY(right, body.is_right());
    if (!right) MK_CHECK(body.restart());
  }
  if (!right)
    return fail(ErrorCode::failed, fmt::format("what was downloaded as {} does not have the Hub's hash", file.name),
                wanted.id, "A proxy or a mirror may change files on their way; try again without it");
  MK_CHECK(move_file(place, final_path, true));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const double received = static_cast<double>(body.received());
  stage.done(received < 1e6 ? size_text(static_cast<double>(body.offset()))
                            : fmt::format("{}, {}/s", size_text(static_cast<double>(body.offset())),
                                          size_text(received / std::max(time.count(), 1e-3))));
  return {};
}

}  // namespace

Status download(const HubDownload& wanted, const HubStore& store, HubConnection& connection, Progress& progress) {
  const std::string& etag = wanted.file.etag;
  MK_CHECK(store.make_folders(wanted.commit));
  if (is_there(store.blob(etag))) return store.place(wanted.commit, wanted.file.name, etag, false);
  MK_TRY(const FileLock lock, store.lock(etag, [&] {
    progress.note(fmt::format("Another process downloads {}; waiting for it", wanted.file.name));
  }));
  if (is_there(store.file(wanted.commit, wanted.file.name))) return {};
  bool fresh = false;
  if (!is_there(store.blob(etag))) {
    const auto stage = progress.stage(fmt::format("download {}", wanted.file.name));
    const Path growing = lock.is_exclusive() ? store.partial(etag) : store.partial_of_this_process(etag);
    const auto fetched = fetch_blob(wanted, growing, store.blob(etag), connection, *stage);
    std::error_code ignored;
    if (!fetched && !lock.is_exclusive()) std::filesystem::remove(growing, ignored);
    MK_CHECK(fetched);
    fresh = true;
  }
  return store.place(wanted.commit, wanted.file.name, etag, fresh);
}

}  // namespace mk
