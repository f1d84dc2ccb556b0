#pragma once
// Errors as values. Nothing throws across a module's border: a function that can fail returns Result<T> (or Status).
// An Error says what is wrong, where (a file, a node, a tensor, a JSON pointer) and what to do next.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace mk {

// Closed set; exit_code() maps it once to the exit codes of the command (docs/exit-codes.md).
enum class ErrorCode {
  negative,     // the answer to a question is no                                      -> 1
  failed,       // a stage failed                                                      -> 1
  exists,       // the output exists and --overwrite was not given                     -> 1
  usage,        // options or configuration                                            -> 2
  not_found,    // a missing file or folder, a model reference that leads nowhere      -> 2
  malformed,    // the model or checkpoint is there but broken                         -> 3
  unsupported,  // the model or checkpoint is of a kind that is not supported          -> 3
  inference,    // a session could not be made, or a run failed                        -> 4
  interrupted,  // Ctrl-C                                                              -> 130
};

int exit_code(ErrorCode code);
// The name in `--format json`: "negative", "usage", ...
std::string_view name_of(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string message;  // what, without a final full stop
  std::string where;    // file, node, tensor, JSON pointer; may be empty
  std::string hint;     // what to do next; may be empty

  // "WHAT (WHERE). TRY", one line.
  std::string to_string() const;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}, std::string hint = {}) {
  return tl::make_unexpected(Error{code, std::move(message), std::move(where), std::move(hint)});
}

}  // namespace mk

#define MK_CONCAT_INNER(a, b) a##b
#define MK_CONCAT(a, b) MK_CONCAT_INNER(a, b)

// MK_TRY(auto file, File::open(path)); returns the error to the caller, or binds the value.
#define MK_TRY(declaration, ...) MK_TRY_INNER(MK_CONCAT(mk_result_, __LINE__), declaration, __VA_ARGS__)
#define MK_TRY_INNER(result, declaration, ...)                          \
  auto result = (__VA_ARGS__);                                          \
  if (!result) return ::tl::make_unexpected(std::move(result).error()); \
  declaration = std::move(*result)

// MK_CHECK(writer.sync()); returns the error of a Status (or of a Result whose value is not needed) to the caller.
#define MK_CHECK(...)                                                                                           \
  do {                                                                                                          \
    if (auto mk_status = (__VA_ARGS__); !mk_status) return ::tl::make_unexpected(std::move(mk_status).error()); \
  } while (false)
