#include "checkpoint/safetensors.h"

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/expect_tensors.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::fixture;
using testing::TemporaryFolder;

std::string file_of(std::string_view header, std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + std::string(header) + std::string(data_bytes, '\1');
}

TEST(Safetensors, ReadsEveryElementType) {
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open_safetensors(fixture("types.safetensors")));
  testing::expect_tensors(checkpoint, "types_safetensors.json");
  EXPECT_EQ(checkpoint.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  for (const auto& [name, tensor] : checkpoint.tensors()) EXPECT_TRUE(tensor.data->file_range()) << name;
}

TEST(Safetensors, TakesWhatTheFormatAllows) {
  TemporaryFolder folder;
  const auto opens = [&](std::string_view header, std::size_t data) {
    return Checkpoint::open_safetensors(folder.write("x.safetensors", file_of(header, data))).has_value();
  };
  EXPECT_TRUE(opens("{}", 0));
  EXPECT_TRUE(opens(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}      )", 3));
  EXPECT_TRUE(opens(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4));
  EXPECT_TRUE(opens(R"({"a":{"dtype":"F32","shape":[7,0],"data_offsets":[0,0]}})", 0));
  EXPECT_TRUE(opens(
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      2));
  EXPECT_TRUE(
      opens(R"({"a":{"x":{"y":[1,{"z":null}]},"dtype":"U8","w":-1.5,"shape":[1],"data_offsets":[0,1],"v":[[]]}})", 1));
  EXPECT_TRUE(opens(R"({"__metadata__":{},"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3));
}

struct Broken {
  std::string_view header;
  std::size_t data;
  std::string_view says;
};

// The cases of the reference reader's own tests, and more.
TEST(Safetensors, RefusesWhatTheFormatForbids) {
  const Broken cases[] = {
      {R"([])", 0, "does not begin with '{'"},
      {R"( {})", 0, "does not begin with '{'"},
      {R"({"a":)", 0, "no valid JSON at byte"},
      {R"({} x)", 0, "no valid JSON at byte 11"},
      {"{\"\xff\":1}", 0, "no valid JSON"},
      {R"({"a":1})", 0, "entry 'a' is a number"},
      {R"({"a":[]})", 0, "entry 'a' is a list"},
      {R"({"a":{}})", 0, "'a' needs dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F99","shape":[],"data_offsets":[0,4]}})", 4, "'a' has the unknown dtype F99"},
      {R"({"a":{"dtype":7,"shape":[],"data_offsets":[0,4]}})", 4, "'a' has a number as its dtype"},
      {R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", 4, "'a' has an object in its shape"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "'a' has a number in its shape"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "'a' has a list in its shape"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "'a' has a negative number in its shape"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "'a' has a fraction"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4, "'a' has a dimension of"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "'a' has 1 data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "'a' has 3 data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,null]}})", 4, "'a' has null in its data_offsets"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "'a' has dtype twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "'a' is there twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "'a' of shape [2] needs 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "'a' of shape [1] needs 4 bytes"},
      {R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2, "is no number of bytes"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,4]}})", 4, "is no number of bytes"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0, "is no number of bytes"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "there is a hole before it"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, "'b' begins at byte 1 of the data instead of 2: it overlaps"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3, "1 bytes follow the last tensor"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "the file is cut off: its tensors need 2 bytes"},
      {R"({"__metadata__":{"a":1}})", 0, "__metadata__ has a number under 'a'"},
      {R"({"__metadata__":"a"})", 0, "'__metadata__' is a string"},
  };
  TemporaryFolder folder;
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.header);
    const auto checkpoint =
        Checkpoint::open_safetensors(folder.write("x.safetensors", file_of(broken.header, broken.data)));
    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(exit_code(checkpoint.error().code), 3);
    EXPECT_NE(checkpoint.error().message.find(broken.says), std::string::npos) << checkpoint.error().message;
    EXPECT_NE(checkpoint.error().where.find("x.safetensors"), std::string::npos);
    EXPECT_FALSE(checkpoint.error().hint.empty());
  }
}

TEST(Safetensors, RefusesFilesTooShortForTheirHeader) {
  TemporaryFolder folder;
  using namespace std::string_literals;
  for (const std::string& bytes : {""s, "\1\0\0"s, "\x08\0\0\0\0\0\0\0{}"s, "\xff\xff\xff\xff\xff\xff\xff\xff{}"s,
                                   "\x01\xe1\xf5\x05\0\0\0\0{}"s}) {
    const auto checkpoint = Checkpoint::open_safetensors(folder.write("x.safetensors", bytes));
    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, ErrorCode::malformed);
  }
}

// A deep value must not end the program's stack.
TEST(Safetensors, TakesDeepNonsense) {
  const std::string deep = R"({"a":{"x":)" + std::string(1'000'000, '[');
  EXPECT_FALSE(parse_safetensors_header(deep, 0, "x"));
}

}  // namespace
}  // namespace mk
