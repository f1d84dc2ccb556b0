#include "winml/arguments.h"

#include "testing/testing.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct Sample {
  std::optional<Path> output;
  bool list = false;
  bool overwrite = false;
  std::optional<bool> quant;
  std::int64_t samples = 10;
  double rate = 0.5;
  int verbose = 0;
  std::string format = "text";
  std::vector<std::string> models;
  KeyValues pairs;
};

class Arguments : public ::testing::Test {
 protected:
  Arguments() {
    output_option(table, sample.output, "Where to write");
    options().flag("-l, --list", sample.list, "List");
    overwrite_option(table, sample.overwrite);
    options().toggle("--quant, --quantize", sample.quant, "Quantize");
    options().value("--samples", "N", sample.samples, "Samples").at_least(1);
    options().value("--rate", "R", sample.rate, "Rate");
    options().count("-v, --verbose", sample.verbose, "More");
    options().value("-f, --format", "FORMAT", sample.format, "Format").choices({"text", "json"});
    options().value("-m, --model", "MODEL", sample.models, "Model");
    ep_options_option(table, sample.pairs);
  }
  OptionTable& options() { return table; }
  Status parse(std::vector<std::string> arguments) { return parse_arguments(arguments, table); }
  std::string error(std::vector<std::string> arguments) {
    const auto status = parse(std::move(arguments));
    return status ? "" : status.error().to_string();
  }
  Sample sample;
  OptionTable table;
};

TEST_F(Arguments, TakesValuesInEveryForm) {
  ASSERT_OK(parse({"-o", "a", "--output=b", "-oc", "-o=d", "--samples", "5", "--rate=0.25"}));
  EXPECT_EQ(sample.output, "d");
  EXPECT_EQ(sample.samples, 5);
  EXPECT_EQ(sample.rate, 0.25);
}

TEST_F(Arguments, BundlesShortFlagsAndCounts) {
  ASSERT_OK(parse({"-vvl", "--verbose"}));
  EXPECT_EQ(sample.verbose, 3);
  EXPECT_TRUE(sample.list);
}

TEST_F(Arguments, TogglesKnowWhetherTheyWereTyped) {
  ASSERT_OK(parse({}));
  EXPECT_FALSE(sample.quant.has_value());
  ASSERT_OK(parse({"--no-quantize"}));
  EXPECT_EQ(sample.quant, false);
  ASSERT_OK(parse({"--no-quant", "--quant", "--overwrite", "--no-overwrite"}));
  EXPECT_EQ(sample.quant, true);
  EXPECT_FALSE(sample.overwrite);
}

TEST_F(Arguments, RepeatsAndPairs) {
  ASSERT_OK(parse({"-m", "a", "-m", "b", "--ep-options", " k = a=b=c ", "--ep-options=x=1", "--ep-options", "k=2"}));
  EXPECT_EQ(sample.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sample.pairs, (KeyValues{{"k", "2"}, {"x", "1"}}));
}

TEST_F(Arguments, ChoicesIgnoreCase) {
  ASSERT_OK(parse({"--format", "JSON"}));
  EXPECT_EQ(sample.format, "json");
}

TEST_F(Arguments, NegativeNumbersAreValuesAndOptionsAreNot) {
  ASSERT_OK(parse({"--rate", "-3"}));
  EXPECT_EQ(sample.rate, -3);
  EXPECT_EQ(error({"--output", "--list"}), "Option '--output' needs a value (PATH)");
  EXPECT_EQ(error({"--output"}), "Option '--output' needs a value (PATH)");
}

TEST_F(Arguments, ErrorsNameTheOption) {
  EXPECT_EQ(error({"--smaples", "3"}), "No such option '--smaples'. Did you mean '--samples'?");
  EXPECT_EQ(error({"--no-quantise"}), "No such option '--no-quantise'. Did you mean '--no-quantize'?");
  EXPECT_EQ(error({"--xylophone"}), "No such option '--xylophone'");
  EXPECT_EQ(error({"-z"}), "No such option '-z'");
  EXPECT_EQ(error({"--samples", "0"}), "Invalid value for '--samples': '0'. Expected an integer of at least 1");
  EXPECT_EQ(error({"--samples", "ten"}), "Invalid value for '--samples': 'ten'. Expected an integer of at least 1");
  EXPECT_EQ(error({"--rate", "1.5x"}), "Invalid value for '--rate': '1.5x'. Expected a number");
  EXPECT_EQ(error({"-f", "xml"}), "Invalid value for '-f': 'xml'. Choose one of text, json");
  EXPECT_EQ(error({"--ep-options", "novalue"}), "Invalid value for '--ep-options': 'novalue'. Expected NAME=VALUE");
  EXPECT_EQ(error({"--ep-options", " =v"}), "Invalid value for '--ep-options': ' =v'. Expected NAME=VALUE");
  EXPECT_EQ(error({"--list=yes"}), "Option '--list' does not take a value");
  EXPECT_EQ(error({"stray"}), "Unexpected argument 'stray'");
}

TEST_F(Arguments, ADoubleDashEndsOptions) {
  std::string shell;
  options().positional("SHELL", shell, "Shell").required();
  EXPECT_EQ(error({}), "Missing argument 'SHELL'");
  ASSERT_OK(parse({"--", "-l"}));
  EXPECT_EQ(shell, "-l");
  EXPECT_FALSE(sample.list);
}

TEST(OverwriteGuard, LooksBeforeWork) {
  const testing::TemporaryFolder folder;
  const Path file = folder.write("there.onnx", "x");
  std::filesystem::create_directory(folder / "empty");
  std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
  EXPECT_TRUE(guard_overwrite(std::nullopt, false));
  EXPECT_TRUE(guard_overwrite(folder / "missing.onnx", false));
  EXPECT_TRUE(guard_overwrite(folder / "empty", false));
  EXPECT_TRUE(guard_overwrite(file, true));
  const auto is_file = guard_overwrite(file, false);
  ASSERT_FALSE(is_file);
  EXPECT_EQ(is_file.error().code, ErrorCode::exists);
  EXPECT_EQ(is_file.error().to_string(),
            "Output '" + to_utf8(file) + "' already exists. Re-run with --overwrite to replace it");
  const auto is_folder = guard_overwrite(folder.path(), false, "Cache");
  ASSERT_FALSE(is_folder);
  EXPECT_EQ(is_folder.error().message,
            "Cache directory '" + to_utf8(folder.path()) + "' already exists and is not empty");
  EXPECT_FALSE(guard_overwrite(folder / "dangling", false));
}

}  // namespace
}  // namespace mk::cli
