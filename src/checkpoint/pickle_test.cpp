#include "checkpoint/pickle.h"

#include "testing/testing.h"

namespace mk {
namespace {

using Kind = Pickle::Kind;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

Result<Pickle> read(std::string stream) {
  const auto allows = [](std::string_view name) { return name == "collections.OrderedDict" || name == "torch.Size"; };
  return Pickle::read(std::move(stream), allows, "x");
}

// What Python 3.11's pickle.dumps gives for [None, True, False, 0, -1, 255, 65535, 70000, -2**40, 2**80, 1.5, 'é',
// b'ab',
// (), (1,), (1, 2, 3, 4), {'k': [7]}, {3}] with protocol 4.
constexpr std::string_view every_kind =
    "80049563000000000000005d94284e88894b004affffffff4bff4dffff4a701101008a060000000000ff8a0b0000000000000000000001473f"
    "f80000"
    "000000008c02c3a9944302616294294b018594284b014b024b034b0474947d948c016b945d944b0761738f94284b0390652e";

TEST(Pickle, ReadsEveryKindOfValue) {
  ASSERT_OK_AND(const Pickle pickle, read(from_hex(every_kind)));
  ASSERT_EQ(pickle.root().kind, Kind::list);
  const auto& ids = pickle.root().items;
  ASSERT_EQ(ids.size(), 18u);
  const auto item = [&](std::size_t i) -> const Pickle::Node& { return pickle.at(ids[i]); };
  EXPECT_EQ(item(0).kind, Kind::none);
  EXPECT_EQ(item(1).kind, Kind::boolean);
  EXPECT_EQ(item(1).integer, 1);
  EXPECT_EQ(item(2).integer, 0);
  const std::int64_t integers[] = {0, -1, 255, 65535, 70000, -(std::int64_t{1} << 40)};
  for (std::size_t i = 0; i < std::size(integers); ++i) {
    EXPECT_EQ(item(3 + i).kind, Kind::integer);
    EXPECT_EQ(item(3 + i).integer, integers[i]);
  }
  EXPECT_EQ(item(9).kind, Kind::big_integer);
  EXPECT_EQ(item(10).real, 1.5);
  EXPECT_EQ(item(11).text, "é");
  EXPECT_EQ(item(12).kind, Kind::bytes);
  EXPECT_EQ(item(12).text, "ab");
  EXPECT_EQ(item(13).items.size(), 0u);
  EXPECT_EQ(item(14).items.size(), 1u);
  ASSERT_EQ(item(15).items.size(), 4u);
  EXPECT_EQ(pickle.at(item(15).items[3]).integer, 4);
  ASSERT_EQ(item(16).kind, Kind::dict);
  const Pickle::Node* value = pickle.find(item(16), "k");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->kind, Kind::list);
  EXPECT_EQ(pickle.find(item(16), "other"), nullptr);
  EXPECT_EQ(item(17).kind, Kind::set);
}

TEST(Pickle, NeverReadsBeyondACut) {
  const std::string whole = from_hex(every_kind);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto pickle = read(whole.substr(0, size));
    ASSERT_FALSE(pickle) << size;
    EXPECT_EQ(pickle.error().code, ErrorCode::malformed);
  }
}

TEST(Pickle, RefusesEveryNameThatIsNotAllowed) {
  using namespace std::string_literals;
  // pickle.dumps of an object whose __reduce__ is (os.system, ("true",)), protocols 2 and 4; and the text form.
  for (const std::string& stream :
       {"\x80\x02"
        "cposix\nsystem\nX\x04\0\0\0true\x85R."s,
        "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."s, "c__builtin__\neval\n."s}) {
    const auto pickle = read(stream);
    ASSERT_FALSE(pickle);
    EXPECT_EQ(pickle.error().code, ErrorCode::unsupported);
    EXPECT_NE(
        pickle.error().message.find(stream.find("eval") == std::string::npos ? "posix.system" : "__builtin__.eval"),
        std::string::npos)
        << pickle.error().message;
  }
}

TEST(Pickle, OrderedDictIsADict) {
  using namespace std::string_literals;
  // OrderedDict([("a", 1)]), and an empty one that gets an item and attributes.
  ASSERT_OK_AND(const Pickle made, read("\x80\x02"
                                        "ccollections\nOrderedDict\n]U\x01"
                                        "aK\x01\x86\x61\x85R."s));
  ASSERT_NE(made.find(made.root(), "a"), nullptr);
  EXPECT_EQ(made.find(made.root(), "a")->integer, 1);
  ASSERT_OK_AND(const Pickle filled, read("\x80\x02"
                                          "ccollections\nOrderedDict\n)RU\x01"
                                          "bK\x02s}b."s));
  EXPECT_EQ(filled.find(filled.root(), "b")->integer, 2);
}

struct Broken {
  std::string_view stream;
  std::string_view says;
};

TEST(Pickle, NamesWhatIsBrokenAndWhere) {
  using namespace std::string_view_literals;
  const Broken cases[] = {
      {""sv, "without its STOP (x, byte 0)"},
      {"."sv, "the stack is empty (x, byte 0)"},
      {"K\x01(0."sv, ""},
      {"t."sv, "no mark on the stack (x, byte 0)"},
      {"(K\x01u."sv, "the stack is empty"},
      {"](K\x01u."sv, "a list is used as a dict (x, byte 4)"},
      {"}(K\x01u."sv, "key without a value"},
      {"h\x05."sv, "no remembered object 5 (x, byte 0)"},
      {"K\x01)R."sv, "an integer is called"},
      {"\x80\x09."sv, "pickle protocol 9"},
      {"X\xff\xff\xff\xff"
       "a."sv,
       "are cut off"},
      {"cos\nsystem"sv, "a line is cut off"},
      {"I1\n."sv, "opcode 0x49"},
      {"(K\x01\x85R"sv, "the stack is empty"},
  };
  for (const Broken& broken : cases) {
    SCOPED_TRACE(broken.says);
    const auto pickle = read(std::string(broken.stream));
    if (broken.says.empty()) {
      EXPECT_TRUE(pickle);
      continue;
    }
    ASSERT_FALSE(pickle);
    EXPECT_NE(pickle.error().to_string().find(broken.says), std::string::npos) << pickle.error().to_string();
  }
}

// Streams that would make a careless reader build terabytes.
TEST(Pickle, BoundsWhatShortStreamsBuild) {
  std::string list = "]q";
  list += '\0';
  list += '(';
  for (int i = 0; i < 20000; ++i) list += "K\x01K\x02\x86";
  list +=
      "e0ccollections\nOrderedDict\nq\x01"
      "0";
  for (int i = 0; i < 20000; ++i) {
    list += "h\x01h";
    list += '\0';
    list += "\x85R0";
  }
  const auto dicts = read(list + "N.");
  ASSERT_FALSE(dicts);
  EXPECT_NE(dicts.error().message.find("the dicts are too large"), std::string::npos) << dicts.error().message;

  const auto objects = read(std::string(9u << 20, ')') + ".");
  ASSERT_FALSE(objects);
  EXPECT_NE(objects.error().message.find("objects"), std::string::npos) << objects.error().message;
}

}  // namespace
}  // namespace mk
