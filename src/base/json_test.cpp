#include "base/json.h"

#include <gtest/gtest.h>

#include "base/spelling.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::string error_of(std::string_view text) {
  const Result<Json> json = parse_json(text, "c.json");
  return json ? "parsed as " + dump_json(*json, -1) : json.error().to_string();
}

TEST(Json, ReadsEveryKindOfValue) {
  ASSERT_OK_AND(const Json json, parse_json("\xef\xbb\xbf {\"z\": [1, -2.5e3, true, false, null], \"a\": {}} \n", "x"));
  EXPECT_EQ(dump_json(json, -1), R"({"z": [1, -2500.0, true, false, null], "a": {}})");
}

// Positions as Python's json module counts them ("line 2 column 8").
TEST(Json, ErrorsGiveLineAndColumn) {
  EXPECT_EQ(error_of("{\n  \"a\" 1}"),
            "invalid JSON at line 2, column 7: expected ':' after the key, found '1' (c.json)");
  EXPECT_EQ(error_of("[1, 2"), "invalid JSON at line 1, column 6: expected ',' or ']', found the end (c.json)");
  EXPECT_EQ(error_of("[\"é\", x]"), "invalid JSON at line 1, column 7: expected a value, found 'x' (c.json)");
  EXPECT_EQ(error_of("{\"a\": 1,}"),
            "invalid JSON at line 1, column 9: expected a key in double quotes, found '}' (c.json)");
  EXPECT_EQ(error_of("1 2"), "invalid JSON at line 1, column 3: expected the end after the value (c.json)");
  EXPECT_EQ(error_of(" \n"), "expected JSON, but it is empty (c.json)");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"{",
                           "[",
                           "\"",
                           "\"a",
                           "tru",
                           "-",
                           "1.",
                           "1e",
                           "01",
                           "-01",
                           ".5",
                           "+1",
                           "nul",
                           "[1,]",
                           "{'a': 1}",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xe2\x82",
                           "/* c */ 1",
                           "{1: 2}",
                           "{\"a\"}",
                           "\x01"}) {
    EXPECT_EQ(error_of(text).substr(0, 12), "invalid JSON") << text << " gave " << error_of(text);
  }
}

TEST(Json, BoundsNesting) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  ASSERT_OK(parse_json(nested(200), "x"));
  EXPECT_EQ(parse_json(nested(1'000'000), "x").error().code, ErrorCode::malformed);
  EXPECT_FALSE(parse_json(std::string(1'000'000, '['), "x"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects, "x"));
}

TEST(Json, LastOfEqualKeysWinsAndKeepsItsPlace) {
  ASSERT_OK_AND(const Json json, parse_json(R"({"a": 1, "b": 2, "a": {"c": 3}})", "x"));
  EXPECT_EQ(dump_json(json, -1), R"({"a": {"c": 3}, "b": 2})");
}

TEST(Json, ReadsManyKeysInLinearTime) {
  std::string text = "{\"last\": 0";
  for (int i = 0; i < 300'000; ++i) text += ", \"" + std::to_string(i) + "\": " + std::to_string(i);
  ASSERT_OK_AND(const Json json, parse_json(text + "}", "x"));
  EXPECT_EQ(json.size(), 300'001u);
}

TEST(Json, ReadsStringsAsPythonDoes) {
  ASSERT_OK_AND(const Json json, parse_json(R"("\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00é€😀")", "x"));
  EXPECT_EQ(json.get<std::string>(), "\"\\/\b\f\n\r\té€😀é€😀");
  EXPECT_EQ(dump_json(json), R"("\"\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00\u00e9\u20ac\ud83d\ude00")");
  EXPECT_EQ(dump_json(Json(std::string("a\xff\x7f\0b", 5))), "\"a\\ufffd\\u007f\\u0000b\"");
}

TEST(Json, ReadsNumbersAtTheEdges) {
  ASSERT_OK_AND(const Json json,
                parse_json("[9223372036854775807, -9223372036854775808, 9223372036854775808, 18446744073709551615, "
                           "18446744073709551616, -9223372036854775809, 1e400, -1e400, 1e-400, 8.0, 8.5, 2e18, NaN, "
                           "Infinity, -Infinity, -0, -0.0]",
                           "x"));
  const JsonView view(json, "x");
  EXPECT_EQ(view.at(0).integer(), INT64_MAX);
  EXPECT_EQ(view.at(1).integer(), INT64_MIN);
  for (const std::size_t i : {2u, 3u, 4u, 5u, 6u, 10u, 12u, 13u, 14u}) EXPECT_FALSE(view.at(i).integer()) << i;
  EXPECT_EQ(view.at(3).number(), 18446744073709551615.0);
  EXPECT_EQ(view.at(4).number(), 18446744073709551616.0);
  EXPECT_EQ(view.at(6).number(), HUGE_VAL);
  EXPECT_EQ(view.at(7).number(), -HUGE_VAL);
  EXPECT_EQ(view.at(8).number(), 0.0);
  EXPECT_EQ(view.at(9).integer(), 8);
  EXPECT_EQ(view.at(11).integer(), 2'000'000'000'000'000'000);
  EXPECT_TRUE(std::isnan(view.at(12).number().value()));
  EXPECT_EQ(view.at(14).number(), -HUGE_VAL);
  EXPECT_EQ(dump_json(json[15], -1), "0");
  EXPECT_EQ(dump_json(json[16], -1), "-0.0");
}

// Right-hand sides from Python's repr().
TEST(Json, PrintsFloatsAsPythonDoes) {
  const std::pair<double, const char*> cases[] = {{0.1, "0.1"},
                                                  {1.0, "1.0"},
                                                  {-2.5, "-2.5"},
                                                  {100.0, "100.0"},
                                                  {123.456, "123.456"},
                                                  {0.0001, "0.0001"},
                                                  {0.00012345, "0.00012345"},
                                                  {1e-05, "1e-05"},
                                                  {1e-12, "1e-12"},
                                                  {1.5e-07, "1.5e-07"},
                                                  {1e15, "1000000000000000.0"},
                                                  {1e16, "1e+16"},
                                                  {123456789012345680.0, "1.2345678901234568e+17"},
                                                  {9007199254740993.0, "9007199254740992.0"},
                                                  {1e100, "1e+100"},
                                                  {5e-324, "5e-324"},
                                                  {1.7976931348623157e308, "1.7976931348623157e+308"},
                                                  {0.30000000000000004, "0.30000000000000004"},
                                                  {0.00392156862745098, "0.00392156862745098"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(dump_json(Json(value)), text);
  EXPECT_EQ(dump_json(Json(std::nan(""))), "null");
  EXPECT_EQ(dump_json(Json(-HUGE_VAL)), "null");
}

// json.dumps({"a": [1, {"b": []}], "c": {}, "d": [[], [2]], "e": True}, indent=2)
TEST(Json, IndentsAsPythonDoes) {
  ASSERT_OK_AND(const Json json, parse_json(R"({"a":[1,{"b":[]}],"c":{},"d":[[],[2]],"e":true})", "x"));
  EXPECT_EQ(dump_json(json), R"({
  "a": [
    1,
    {
      "b": []
    }
  ],
  "c": {},
  "d": [
    [],
    [
      2
    ]
  ],
  "e": true
})");
}

TEST(JsonView, NamesThePlace) {
  ASSERT_OK_AND(const Json json,
                parse_json(R"({"text/config": {"sizes": [1, "two"], "on": true, "none": null}})", "x"));
  const JsonView view(json, "config.json");
  EXPECT_EQ(view.where(), "config.json");
  const JsonView text = view.at("text/config");
  EXPECT_EQ(text.at("sizes").integers().error().to_string(),
            "expected an integer, got \"two\" (config.json#/text~1config/sizes/1)");
  EXPECT_EQ(text.at("on").integer().error().message, "expected an integer, got true");
  EXPECT_EQ(text.at("hidden_size").integer().error().to_string(),
            "expected an integer, got null (config.json#/text~1config/hidden_size)");
  EXPECT_EQ(view.at("a").at("b").at(3).where(), "config.json#/a/b/3");
  EXPECT_TRUE(view.has("text/config"));
  EXPECT_FALSE(text.has("none"));
  EXPECT_EQ(text.at("on").boolean(), true);
  EXPECT_EQ(text.size(), 3u);
  EXPECT_EQ(view.integer().error().message, "expected an integer, got an object");
}

TEST(JsonView, SuggestsKnownKeys) {
  ASSERT_OK_AND(const Json json, parse_json(R"({"quant": {"smaples": 3}})", "x"));
  const JsonView view(json, "build.json", ErrorCode::usage);
  ASSERT_OK(view.only_keys({"export", "quant"}));
  const Status status = view.at("quant").only_keys({"mode", "samples"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::usage);
  EXPECT_EQ(status.error().to_string(), "unknown key 'smaples' (build.json#/quant). Did you mean 'samples'?");
  EXPECT_EQ(view.only_keys({"a", "b"}).error().hint, "Known keys: a, b");
}

TEST(Spelling, FindsTheNearestWord) {
  constexpr std::string_view commands[] = {"analyze", "build", "compile", "export", "inspect", "perf", "sys"};
  EXPECT_EQ(nearest("biuld", commands), "build");
  EXPECT_EQ(nearest("exprot", commands), "export");
  EXPECT_EQ(nearest("INSPECT", commands), "inspect");
  EXPECT_EQ(nearest("prf", commands), "perf");
  EXPECT_EQ(nearest("frobnicate", commands), std::nullopt);
  EXPECT_EQ(nearest("", commands), std::nullopt);
}

TEST(JsonView, MessagesShowWhatJsonCannotPrint) {
  for (const char* number : {"NaN", "Infinity", "-Infinity"}) {
    const Json json = *parse_json(number, "c.json");
    EXPECT_EQ(JsonView(json, "c.json").string().error().message, std::string("expected a string, got ") + number);
  }
}

}  // namespace
}  // namespace mk
