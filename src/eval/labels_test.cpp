// Against tests/data/metrics/sampling.json (what datasets and numpy give).

#include "eval/labels.h"

#include "base/json.h"
#include "eval/image_classification.h"
#include "testing/testing.h"

namespace mk {
namespace {

const Json& cases() {
  static const Json json = *read_json(testing::repository("tests/data/metrics/sampling.json"));
  return json["cases"];
}

ModelLabels labels_of(const Json& input) {
  ModelLabels labels;
  for (const auto& [id, name] : input["id2label"].items()) labels.id2label[std::stoll(id)] = name;
  return labels;
}

// The labels that are left and their rows, or the error.
Result<std::pair<Json, Json>> align_all(const Json& input) {
  LabelMapping mapping;
  for (const auto& [name, id] : input["label2id"].items()) mapping[name] = id;
  const LabelAligner aligner(input["names"].get<std::vector<std::string>>(), mapping, labels_of(input));
  Json labels = Json::array(), rows = Json::array();
  for (std::size_t i = 0; i < input["labels"].size(); ++i) {
    const Json& label = input["labels"][i];
    const Cell cell = label.is_null() ? Cell() : Cell(label.get<std::int64_t>());
    MK_TRY(const auto id, aligner.align(cell, "row " + std::to_string(i)));
    if (!id) continue;
    labels.push_back(*id);
    rows.push_back(i);
  }
  return std::pair(labels, rows);
}

TEST(Labels, AlignAsTheReferenceDoes) {
  int run = 0;
  for (const Json& item : cases()) {
    if (item["metric"] != "label_alignment") continue;
    SCOPED_TRACE(item["name"].get<std::string>());
    ++run;
    const auto aligned = align_all(item["input"]);
    if (item["name"] == "nothing_left") {  // the caller's error: it depends on all rows
      ASSERT_TRUE(aligned.has_value());
      EXPECT_TRUE(aligned->first.empty());
    } else if (item.contains("error")) {
      ASSERT_FALSE(aligned.has_value());
      EXPECT_EQ(aligned.error().code, ErrorCode::usage);
      EXPECT_NE(
          aligned.error().message.find(item["name"] == "minus_one" ? "no label" : "label owl is not in the mapping"),
          std::string::npos);
    } else {
      ASSERT_TRUE(aligned.has_value()) << aligned.error().to_string();
      EXPECT_EQ(aligned->first, item["expected"]["labels"]);
      EXPECT_EQ(aligned->second, item["expected"]["rows"]);
    }
  }
  EXPECT_EQ(run, 9);
}

TEST(Labels, TextsAndPlainIds) {
  ModelLabels model{{{0, "cat"}, {1, "dog"}}, {{"cat", 0}, {"dog", 1}}};
  const LabelAligner plain({}, std::nullopt, model);
  EXPECT_EQ(**plain.align(Cell(std::string("DOG")), "row"), 1);
  EXPECT_EQ(**plain.align(Cell(std::int64_t{1}), "row"), 1);
  EXPECT_FALSE(plain.align(Cell(std::int64_t{2}), "row").has_value());
  EXPECT_FALSE(plain.align(Cell(std::string("owl")), "row").has_value());
  EXPECT_FALSE(plain.align(Cell(0.5), "row").has_value());
  const LabelAligner mapped({}, LabelMapping{{"7", 1}}, model);
  EXPECT_EQ(**mapped.align(Cell(std::int64_t{7}), "row"), 1);
  EXPECT_FALSE(mapped.align(Cell(std::int64_t{1}), "row").has_value());
}

TEST(Labels, NamesThatSayNothingAreNotCompared) {
  ModelLabels model{{{0, "LABEL_0"}, {1, "LABEL_1"}}, {{"LABEL_0", 0}, {"LABEL_1", 1}}};
  EXPECT_TRUE(model.generic());
  const LabelAligner aligner({"no", "yes", "maybe"}, std::nullopt, model);
  EXPECT_EQ(**aligner.align(Cell(std::int64_t{1}), "row"), 1);
  EXPECT_EQ(*aligner.align(Cell(std::int64_t{2}), "row"), std::nullopt);
}

TEST(Rows, AreThoseOfTheReference) {
  int run = 0;
  for (const Json& item : cases()) {
    if (item["metric"] != "shuffle") continue;
    const std::uint64_t rows = item["input"]["rows"];
    auto first = item["expected"]["first"].get<std::vector<std::uint64_t>>();
    const auto chosen = choose_rows(rows, {first.size(), true, item["input"]["seed"]});
    std::sort(first.begin(), first.end());
    EXPECT_EQ(chosen, first) << item["name"];
    ++run;
  }
  EXPECT_GE(run, 12);
  EXPECT_EQ(choose_rows(10, {3, false, 42}), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(choose_rows(4, {0, true, 42}).size(), 4U);
}

}  // namespace
}  // namespace mk
