#include "runtime/locate.h"

#include "testing/testing.h"

namespace mk {
namespace {

#ifdef __linux__
constexpr const char* file_name = "libonnxruntime.so.1.32.0";

TEST(Locate, OrderIsExecutablePythonCacheSystem) {
  testing::TemporaryFolder folder;
  folder.write("app/lib/libonnxruntime.so.1", "");
  folder.write("venv/lib/python3.9/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.0", "");
  folder.write("venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.24.4", "");
  folder.write("venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime_providers_shared.so", "");
  folder.write("cache/onnxruntime-1.9.0/lib/libonnxruntime.so", "");
  folder.write("cache/onnxruntime-1.32.0/lib/libonnxruntime.so", "");
  folder.write("cache/onnxruntime-1.32.0/lib/libonnxruntime.so.1.32.0", "");
  const auto found = runtime_candidates(
      {.executable = folder / "app/bin", .environments = {folder / "venv"}, .cache = folder / "cache"});
  std::vector<std::string> usable;
  for (const auto& candidate : found)
    if (candidate.problem.empty())
      usable.push_back(candidate.source + " " + candidate.path.lexically_relative(folder.path()).generic_string());
  EXPECT_EQ(usable,
            (std::vector<std::string>{
                "beside the executable app/lib/libonnxruntime.so.1",
                "Python environment venv/lib/python3.11/site-packages/onnxruntime/capi/libonnxruntime.so.1.24.4",
                "Python environment venv/lib/python3.9/site-packages/onnxruntime/capi/libonnxruntime.so.1.20.0",
                "cache cache/onnxruntime-1.32.0/lib/libonnxruntime.so",
                "cache cache/onnxruntime-1.9.0/lib/libonnxruntime.so", "system "}));
  ASSERT_EQ(found.front().problem, "no such folder");  // app/bin
}

TEST(Locate, WhatTheUserNamesIsAllThatIsTried) {
  testing::TemporaryFolder folder;
  const Path library = folder.write(file_name, "");
  for (const Path& named : {library, folder.path()}) {
    const auto found = runtime_candidates({.option = named, .variable = "elsewhere", .cache = folder.path()});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].path, library);
    EXPECT_EQ(found[0].source, "--ort");
    EXPECT_TRUE(found[0].named && found[0].problem.empty());
  }
  const auto missing = runtime_candidates({.variable = folder / "nowhere"});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].source, "WINML_ORT_PATH");
  EXPECT_EQ(missing[0].problem, "no such file or folder");
}
#endif

}  // namespace
}  // namespace mk
