#include "runtime/npz.h"

#include "base/file.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::repository;

template <typename T>
std::vector<T> values_of(const HostTensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

// Written by tests/data/runtime/make_arrays.py, with numpy.
TEST(Npz, ReadsWhatNumpyWrites) {
  for (const char* file : {"arrays.npz", "arrays_deflated.npz"}) {
    SCOPED_TRACE(file);
    ASSERT_OK_AND(const auto tensors, read_npz(repository("tests/data/runtime") / file));
    ASSERT_EQ(tensors.size(), 7u);
    EXPECT_EQ(tensors[0].name, "ids");
    EXPECT_EQ(tensors[0].type, DataType::int64);
    EXPECT_EQ(tensors[0].dims, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(values_of<std::int64_t>(tensors[0]), (std::vector<std::int64_t>{1, -2, 3, 4, 5, 600000000000}));
    EXPECT_EQ(tensors[1].name, "a/b.c");
    EXPECT_EQ(values_of<float>(tensors[1]), (std::vector<float>{0.5f, -1.5f}));
    EXPECT_EQ(tensors[2].name, "big_endian");
    EXPECT_EQ(values_of<std::int32_t>(tensors[2]), (std::vector<std::int32_t>{1, -2, 70000}));
    EXPECT_EQ(tensors[3].name, "column_major");
    EXPECT_EQ(tensors[3].dims, (std::vector<std::int64_t>{2, 3, 4}));
    const auto ordered = values_of<std::uint16_t>(tensors[3]);
    for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(ordered[i], i);
    EXPECT_EQ(tensors[4].name, "scalar");
    EXPECT_TRUE(tensors[4].dims.empty());
    EXPECT_EQ(values_of<double>(tensors[4]), std::vector<double>{2.25});
    EXPECT_EQ(tensors[5].name, "flags");
    EXPECT_EQ(tensors[5].type, DataType::boolean);
    EXPECT_EQ(values_of<std::uint8_t>(tensors[5]), (std::vector<std::uint8_t>{1, 0, 1}));
    EXPECT_EQ(tensors[6].name, "empty");
    EXPECT_EQ(tensors[6].dims, (std::vector<std::int64_t>{0, 4}));
    EXPECT_EQ(tensors[6].type, DataType::float16);
  }
}

TEST(Npz, SaysWhatIsWrongWithAFile) {
  testing::TemporaryFolder folder;
  EXPECT_EQ(read_npz(folder / "none.npz").error().code, ErrorCode::not_found);
  const auto npy = read_npz(folder.write("x.npy", "\x93NUMPY"));
  EXPECT_EQ(npy.error().code, ErrorCode::usage);
  EXPECT_NE(npy.error().hint.find("savez"), std::string::npos);
  EXPECT_EQ(read_npz(folder.write("x.bin", "")).error().code, ErrorCode::usage);
  EXPECT_EQ(read_npz(folder.write("text.npz", "no archive")).error().code, ErrorCode::malformed);
  const auto objects = read_npz(repository("tests/data/runtime/objects.npz"));
  EXPECT_EQ(objects.error().code, ErrorCode::unsupported);
  EXPECT_NE(objects.error().where.find("things.npy"), std::string::npos);
  ASSERT_OK_AND(const auto whole, read_text(repository("tests/data/runtime/arrays_deflated.npz")));
  for (std::size_t length = 0; length < whole.size(); length += 61) {
    const auto cut = read_npz(folder.write("cut.npz", whole.substr(0, length)));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().code, ErrorCode::malformed) << length;
    EXPECT_FALSE(cut.error().hint.empty()) << length;
  }
}

TEST(Npy, MalformedHeadersAreErrors) {
  const auto parse = [](std::string header, std::string data = "") {
    std::string file = "\x93NUMPY";
    file += '\x01';
    file += '\0';
    file += static_cast<char>(header.size() & 0xff);
    file += static_cast<char>(header.size() >> 8);
    file += header + data;
    return parse_npy(std::as_bytes(std::span(file)), "x");
  };
  EXPECT_TRUE(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "ab"));
  EXPECT_TRUE(parse("{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": ()}\n", "a"));
  for (const char* header : {"", "{", "{}", "{'descr': '|u1'}", "{'descr': '|u1', 'fortran_order': 3, 'shape': (2,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (2}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'more': 1}",
                             "{'descr': [('a', 'u1')], 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}"}) {
    const auto tensor = parse(header, "ab");
    ASSERT_FALSE(tensor) << header;
    EXPECT_EQ(tensor.error().code, ErrorCode::malformed) << header;
  }
  EXPECT_FALSE(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"));
  EXPECT_EQ(parse("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", "ab").error().code,
            ErrorCode::unsupported);
}

}  // namespace
}  // namespace mk
