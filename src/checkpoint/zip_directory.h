#pragma once
// The central directory of a ZIP file (PKWARE APPNOTE 6.3.10, ZIP64 included): where each entry's bytes stand in the
// file. Only what torch.save writes is wanted, entries stored without compression, so that a tensor's bytes stay in
// place.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "graph/tensor.h"

namespace mk {

struct ZipEntry {
  std::uint64_t header = 0;       // of the local header, in the file
  std::uint64_t stored_size = 0;  // in the file
  std::uint64_t size = 0;         // unpacked
  std::uint16_t method = 0;       // 0 is stored, 8 is deflate
  bool encrypted = false;
};

class ZipDirectory {
 public:
  // malformed with the byte offset.
  static Result<ZipDirectory> read(std::shared_ptr<const File> file);

  const std::map<std::string, ZipEntry, std::less<>>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;
  // The bytes of an entry. unsupported where it is compressed or encrypted.
  Result<FileRange> range(std::string_view name) const;

 private:
  std::shared_ptr<const File> file_;
  std::map<std::string, ZipEntry, std::less<>> entries_;
};

}  // namespace mk
