#pragma once
// Text for people: colour that vanishes where it is not wanted, columns, sizes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mk::cli {

struct Style {
  bool color = false;
  bool symbols = true;  // characters beyond ASCII show
  int width = 100;      // columns to fill

  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string red(std::string_view text) const { return paint("31", text); }
  std::string green(std::string_view text) const { return paint("32", text); }
  std::string yellow(std::string_view text) const { return paint("33", text); }
  std::string cyan(std::string_view text) const { return paint("36", text); }

 private:
  std::string paint(std::string_view code, std::string_view text) const;
};

// Columns that a terminal gives to UTF-8 text without escapes: code points.
std::size_t display_width(std::string_view text);
std::string pad_right(std::string_view text, std::size_t width);
// At most `width` columns; what is cut ends in "...".
std::string shorten(std::string_view text, std::size_t width);
// Words over lines of at most `width` columns; at least one line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// 97.6 MB, 1.2 GB (powers of 1000, one decimal), 512 bytes.
std::string bytes_text(std::uint64_t bytes);

// Rows of cells as columns two spaces apart, the last one unpadded. Lines begin with `indent`.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::string_view indent = "  ");

}  // namespace mk::cli
