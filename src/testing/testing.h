#pragma once
// What tests share: a folder that goes away, paths of test data, and assertions on Result.

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <random>
#include <string>

#include "base/path.h"
#include "base/result.h"

#define ASSERT_OK(...)                                                     \
  do {                                                                     \
    const auto& mk_outcome = (__VA_ARGS__);                                \
    ASSERT_TRUE(mk_outcome.has_value()) << mk_outcome.error().to_string(); \
  } while (false)

// ASSERT_OK_AND(auto file, File::open(path));
#define ASSERT_OK_AND(declaration, ...) MK_ASSERT_INNER(MK_CONCAT(mk_result_, __LINE__), declaration, __VA_ARGS__)
#define MK_ASSERT_INNER(result, declaration, ...)                \
  auto result = (__VA_ARGS__);                                   \
  ASSERT_TRUE(result.has_value()) << result.error().to_string(); \
  declaration = std::move(*result)

namespace mk::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("modelkit-test-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const Path& path() const { return path_; }
  Path operator/(const Path& name) const { return path_ / name; }

  Path write(const Path& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  Path path_;
};

// A path below the repository: repository("tests/data/x.onnx").
inline Path repository(std::string_view relative) { return Path(MODELKIT_SOURCE_DIR) / relative; }

}  // namespace mk::testing
