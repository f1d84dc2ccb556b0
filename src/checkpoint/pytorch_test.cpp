#include "checkpoint/pytorch.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/expect_tensors.h"
#include "checkpoint/strided.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::expect_tensors;
using testing::fixture;
using testing::TemporaryFolder;

TEST(PyTorch, ReadsEveryElementType) {
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_pytorch(fixture("types.bin")));
  expect_tensors(checkpoint, "types.json");
}

TEST(PyTorch, ReadsViewsAsPyTorchSeesThem) {
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_pytorch(fixture("views.bin")));
  expect_tensors(checkpoint, "views.json");
}

TEST(PyTorch, ContiguousViewsAreRangesOfTheFile) {
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_pytorch(fixture("views.bin")));
  const auto range = [&](std::string_view name) { return checkpoint.find(name)->data->file_range(); };
  ASSERT_TRUE(range("tied.a") && range("tied.b") && range("whole") && range("rows") && range("one_row"));
  EXPECT_EQ(range("tied.a")->offset, range("tied.b")->offset);
  EXPECT_EQ(range("tied.a")->length, 60u);
  EXPECT_EQ(range("rows")->offset, range("whole")->offset + 24);
  EXPECT_FALSE(range("columns") || range("transposed"));
}

TEST(PyTorch, SharedDataCountsOnce) {
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_pytorch(fixture("views.bin")));
  std::uint64_t all = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) all += tensor.byte_count();
  EXPECT_EQ(checkpoint.total_bytes(), all - 60);
}

TEST(PyTorch, FindsTheStateDict) {
  for (const std::string_view name : {"module.bin", "protocol4.bin", "nested.bin", "zip64.bin"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_pytorch(fixture(name)));
    expect_tensors(checkpoint, "module.json");
  }
}

struct Refusal {
  std::string_view file;
  ErrorCode code;
  std::string_view says;
};

TEST(PyTorch, RefusesWithAReason) {
  const Refusal refusals[] = {
      {"refused_attack.bin", ErrorCode::unsupported, "posix.system"},
      {"refused_legacy.bin", ErrorCode::unsupported, "before 1.6"},
      {"refused_compressed.bin", ErrorCode::unsupported, "is compressed"},
      {"refused_big_endian.bin", ErrorCode::unsupported, "'big'"},
      {"refused_quantized.bin", ErrorCode::unsupported,
       "tensor 'b' is of a kind that is not supported: torch._utils._rebuild_qtensor"},
      {"refused_sparse.bin", ErrorCode::unsupported,
       "tensor 'b' is of a kind that is not supported: torch._utils._rebuild_sparse_tensor"},
      {"refused_conjugate.bin", ErrorCode::unsupported, "tensor 'a' is a conjugate"},
      {"refused_list.bin", ErrorCode::unsupported, "a list without tensors"},
      {"refused_script.bin", ErrorCode::unsupported, "TorchScript"},
      {"make_fixtures.py", ErrorCode::malformed, "no zip file"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.file);
    const auto checkpoint = Checkpoint::open_pytorch(fixture(refusal.file));
    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, refusal.code);
    EXPECT_NE(checkpoint.error().to_string().find(refusal.says), std::string::npos) << checkpoint.error().to_string();
    EXPECT_NE(checkpoint.error().where.find(refusal.file), std::string::npos) << checkpoint.error().where;
  }
}

// A file cut at any byte, or with any byte changed, is an error or another checkpoint; never a crash.
TEST(PyTorch, SurvivesDamage) {
  TemporaryFolder folder;
  ASSERT_OK_AND(const std::string whole, read_text(fixture("views.bin")));
  for (std::size_t size = 0; size < whole.size(); size += 37) {
    const auto checkpoint = Checkpoint::open_pytorch(folder.write("cut.bin", whole.substr(0, size)));
    ASSERT_FALSE(checkpoint) << size;
    EXPECT_EQ(checkpoint.error().code, ErrorCode::malformed) << checkpoint.error().to_string();
  }
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x2f);
    const auto checkpoint = Checkpoint::open_pytorch(folder.write("changed.bin", changed));
    if (!checkpoint) continue;
    for (const auto& [name, tensor] : checkpoint->tensors()) {
      const auto bytes = read_all(*tensor.data);
      EXPECT_TRUE(!bytes || bytes->size() == tensor.byte_count());
    }
  }
}

TEST(PyTorch, NamesAreText) {
  ASSERT_OK_AND(std::string whole, read_text(fixture("module.bin")));
  TemporaryFolder folder;
  for (const std::string_view other : {"0.weigh\xff", "0.weigh\xc3"}) {
    std::string changed = whole;
    changed.replace(changed.find("0.weight"), 8, other);
    const auto checkpoint = Checkpoint::open_pytorch(folder.write("x.bin", changed));
    ASSERT_FALSE(checkpoint);
    EXPECT_NE(checkpoint.error().message.find("invalid UTF-8 as its name"), std::string::npos);
  }
}

TEST(Strided, RefusesViewsThatLeaveTheirStorage) {
  TemporaryFolder folder;
  ASSERT_OK_AND(const auto file, File::open(folder.write("storage", std::string(48, 'x'))));
  const auto code = [&](auto change) {
    StridedView view;
    view.storage = {file, 0, 48};
    view.width = 4;
    view.sizes = {3, 4};
    view.strides = {4, 1};
    change(view);
    const auto bytes = strided_bytes(view);
    return bytes ? std::optional<ErrorCode>() : std::optional(bytes.error().code);
  };
  EXPECT_EQ(code([](auto&) {}), std::nullopt);
  EXPECT_EQ(code([](auto& v) { v.offset = 1; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.strides = {5, 1}; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.strides = {-4, 1}; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.sizes = {-3, 4}; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.strides = {1}; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.sizes = {INT64_MAX, INT64_MAX}; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.offset = UINT64_MAX; }), ErrorCode::malformed);
  EXPECT_EQ(code([](auto& v) { v.sizes = {INT64_MAX, 1}, v.strides = {0, 1}; }), ErrorCode::unsupported);
  EXPECT_EQ(code([](auto& v) { v.sizes = {0, INT64_MAX}, v.offset = 99; }), std::nullopt);
}

}  // namespace
}  // namespace mk
