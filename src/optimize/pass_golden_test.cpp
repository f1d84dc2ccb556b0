// Every pass against the cases beside it: passes/NAME.txt has graphs in ONNX's text syntax, what each becomes, or that
// it stays. Both are run in ONNX Runtime on random inputs, too.
//
//   == what is particular about the case (opset 13)
//   g (float[2, 3] x) => (float[2, 3] y) { y = Identity(x) }
//   -- becomes            or: -- stays, which may be followed by a part of the reason
//   g (float[2, 3] x) => (float[2, 3] y) { ... }
//
// `(tolerance 1e-2)` in the title is for passes that approximate; `(not run)` for graphs that ONNX Runtime cannot run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/random.h"
#include "graph/onnx_writer.h"
#include "graph/verifier.h"
#include "optimize/optimizer.h"
#include "optimize/passes.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"
#include "testing/canonical_graph.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

struct Case {
  std::string pass;
  std::string title;
  std::string before;
  std::string after;   // empty: stays
  std::string reason;  // a part of it
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.pass << ": " << c.title; }

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" \n"));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::vector<Case> read_cases(const Path& file) {
  std::ifstream in(file);
  std::vector<Case> cases;
  std::string line;
  std::string* part = nullptr;
  std::string ignored;
  while (std::getline(in, line)) {
    if (line.starts_with("== ")) {
      Case& added = cases.emplace_back();
      added.pass = file.stem().string();
      std::replace(added.pass.begin(), added.pass.end(), '_', '-');
      added.title = line.substr(3);
      part = &added.before;
    } else if (line.starts_with("-- becomes")) {
      part = &cases.back().after;
    } else if (line.starts_with("-- stays")) {
      cases.back().reason = trimmed(line.substr(8));
      part = &ignored;
    } else if (part) {
      *part += line + '\n';
    }
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(testing::repository("src/optimize/passes"))) {
    if (entry.path().extension() != ".txt") continue;
    for (Case& c : read_cases(entry.path())) cases.push_back(std::move(c));
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return std::tie(a.pass, a.title) < std::tie(b.pass, b.title); });
  return cases;
}

std::string word_after(const std::string& title, const std::string& key, const std::string& otherwise) {
  const std::size_t at = title.find('(' + key + ' ');
  if (at == std::string::npos) return otherwise;
  const std::size_t start = at + key.size() + 2;
  return title.substr(start, title.find(')', start) - start);
}

Result<std::unique_ptr<Model>> model_of(const Case& c, const std::string& graph) {
  const std::string text = trimmed(graph);
  if (text.starts_with('<')) return testing::model_of_text(text);
  return testing::model_of_text("<ir_version: 8, opset_import: [\"\" : " + word_after(c.title, "opset", "17") +
                                ", \"com.microsoft\" : 1]>\n" + text);
}

Result<std::vector<HostTensor>> outputs_of(const Model& model) {
  MK_TRY(const auto runtime, Runtime::load());
  MK_TRY(const std::string bytes, serialize_onnx(model));
  SessionOptions options;
  options.optimization = GraphOptimization::none;
  MK_TRY(const Session session, Session::open_bytes(runtime, bytes, options));
  std::vector<DrawSpec> specs;
  for (const Port& input : session.inputs()) {
    DrawSpec& spec = specs.emplace_back(DrawSpec{.name = input.name, .type = input.type.element});
    for (const Dim& dim : input.type.shape.value_or(Shape{})) spec.dims.push_back(dim.is_known() ? dim.value : 3);
    if (is_float(spec.type)) spec.range = ValueRange{-2, 2};
  }
  MK_TRY(const std::vector<HostTensor> inputs, random_inputs(specs));
  return session.run(inputs);
}

void expect_same_numbers(const Model& before, const Model& after, double tolerance) {
  ASSERT_OK_AND(const auto expected, outputs_of(before));
  ASSERT_OK_AND(const auto actual, outputs_of(after));
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].dims, actual[i].dims) << expected[i].name;
    ASSERT_OK_AND(const auto wanted, float64_values(expected[i]));
    ASSERT_OK_AND(const auto found, float64_values(actual[i]));
    ASSERT_EQ(wanted.size(), found.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (std::isnan(wanted[k]) && std::isnan(found[k])) continue;
      ASSERT_NEAR(wanted[k], found[k], tolerance * std::max(1.0, std::abs(wanted[k]))) << expected[i].name << ' ' << k;
    }
  }
}

class PassGolden : public ::testing::TestWithParam<Case> {};

TEST_P(PassGolden, BecomesWhatItsCaseSays) {
  const Case& c = GetParam();
  const Pass* pass = pass_named(c.pass);
  ASSERT_NE(pass, nullptr) << "no pass of that name";
  ASSERT_OK_AND(auto model, model_of(c, c.before));
  const auto original = clone(*model);
  OptimizeOptions options{.passes = std::span(&pass, 1), .explain = true};
  if (pass->is_switched()) ASSERT_OK(options.capabilities.set(pass->capability(), true));
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, options));
  for (const RolledBack& taken : report.rolled_back) ADD_FAILURE() << "rolled back: " << taken.reason;
  ASSERT_OK(verify(*model));
  std::string reasons;
  for (const NearMiss& miss : report.near_misses) reasons += miss.node + ": " + miss.reason + '\n';
  if (c.after.empty()) {
    EXPECT_TRUE(report.passes.empty()) << testing::canonical_text(*model);
    EXPECT_NE(reasons.find(c.reason), std::string::npos) << reasons;
    return;
  }
  ASSERT_OK_AND(const auto expected, model_of(c, c.after));
  EXPECT_EQ(testing::canonical_text(*model), testing::canonical_text(*expected)) << reasons;
  if (c.title.find("(not run)") == std::string::npos) {
    expect_same_numbers(*original, *model, std::stod(word_after(c.title, "tolerance", "1e-5")));
  }
}

std::string test_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.pass + "_" + info.param.title;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name + '_' + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Passes, PassGolden, ::testing::ValuesIn(all_cases()), test_name);

TEST(PassGolden, EveryPassHasCases) {
  for (const Pass* pass : all_passes()) {
    std::string stem(pass->name);
    std::replace(stem.begin(), stem.end(), '-', '_');
    const Path file = testing::repository("src/optimize/passes/" + stem + ".txt");
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
}

}  // namespace
}  // namespace mk
