#include "runtime/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>

#include "base/text.h"

namespace mk {
namespace {

// Deflate reaches about 1030 to 1: an entry that promises more is lying, and nothing is allocated for it.
constexpr std::uint64_t best_compression = 1100;

constexpr std::string_view save_anew = "Save it with numpy.savez('inputs.npz', INPUT_NAME=array)";

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

Result<std::vector<std::byte>> read_entry(zip_t& archive, std::uint64_t index, std::uint64_t size,
                                          const std::string& where) {
  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen_index(&archive, index, 0));
  if (!entry)
    return fail(ErrorCode::malformed, std::string("cannot read it: ") + zip_strerror(&archive), where,
                std::string(save_anew));
  std::vector<std::byte> bytes(size);
  std::uint64_t done = 0;
  while (done < size) {
    const zip_int64_t count = zip_fread(entry.get(), bytes.data() + done, size - done);
    if (count <= 0) return fail(ErrorCode::malformed, "the archive is damaged here", where, std::string(save_anew));
    done += static_cast<std::uint64_t>(count);
  }
  return bytes;
}

}  // namespace

Status check_names(std::span<const HostTensor> arrays, std::span<const Port> inputs, std::string_view where) {
  const auto list = [](std::string& text, const std::string& name) { text += (text.empty() ? "" : ", ") + name; };
  const auto named = [](const std::string& name) { return [&name](const auto& item) { return item.name == name; }; };
  std::string missing, unexpected, expected;
  for (const Port& input : inputs) {
    list(expected, input.name);
    if (std::none_of(arrays.begin(), arrays.end(), named(input.name))) list(missing, input.name);
  }
  for (const HostTensor& array : arrays)
    if (std::none_of(inputs.begin(), inputs.end(), named(array.name))) list(unexpected, array.name);
  if (missing.empty() && unexpected.empty()) return {};
  std::string message;
  if (!missing.empty()) message += "missing [" + missing + "]";
  if (!unexpected.empty())
    message.append(message.empty() ? "" : " and ").append("unexpected [").append(unexpected).append("]");
  return fail(ErrorCode::usage, message, std::string(where), "Expected exactly: [" + expected + "]");
}

Result<std::vector<HostTensor>> read_npz(const Path& path) {
  const std::string where = to_utf8(path);
  const std::string suffix = lower_case(to_utf8(path.extension()));
  if (suffix == ".npy") return fail(ErrorCode::usage, "a .npy file has no input names", where, std::string(save_anew));
  if (suffix != ".npz") return fail(ErrorCode::usage, "expected a .npz file", where, std::string(save_anew));
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return fail(ErrorCode::not_found, "no such file", where, "Check the path");
  const std::uint64_t file_size = std::filesystem::file_size(path, ignored);
  int code = 0;
  const std::unique_ptr<zip_t, CloseArchive> archive(zip_open(where.c_str(), ZIP_RDONLY, &code));
  if (!archive) return fail(ErrorCode::malformed, "not an archive that numpy saved", where, std::string(save_anew));

  std::vector<HostTensor> tensors;
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive.get(), index, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_NAME) ||
        !(stat.valid & ZIP_STAT_SIZE))
      return fail(ErrorCode::malformed, "an entry of the archive has no name or size", where, std::string(save_anew));
    std::string name = stat.name;
    const std::string entry_where = fmt::format("{}: {}", where, name);
    if (!name.ends_with(".npy"))
      return fail(ErrorCode::malformed, "an .npz archive holds only .npy files", entry_where, std::string(save_anew));
    name.resize(name.size() - 4);
    if (stat.size / best_compression > file_size)
      return fail(ErrorCode::malformed, "the array would be larger than the file can hold", entry_where,
                  std::string(save_anew));
    MK_TRY(const auto bytes, read_entry(*archive, index, stat.size, entry_where));
    auto tensor = parse_npy(bytes, name);
    if (!tensor) {
      tensor.error().where = entry_where;
      if (tensor.error().hint.empty()) tensor.error().hint = save_anew;
      return tl::make_unexpected(std::move(tensor).error());
    }
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace mk
