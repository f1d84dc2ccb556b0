#pragma once
// UTF-8 (RFC 3629).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mk {

// The bytes of the character at `at` (1 to 4), or 0 where there is no valid one: a stray byte, an overlong form, a
// surrogate, a cut end.
std::size_t utf8_length(std::string_view text, std::size_t at);

// The character at `at`, which must be valid.
std::uint32_t utf8_code_point(std::string_view text, std::size_t at);

void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace mk
