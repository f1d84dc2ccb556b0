#include "runtime/similarity.h"

#include <cmath>
#include <cstring>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

double number(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

// Values of a case: written out, or float32 in the book's safetensors file.
class Book {
 public:
  static Result<Book> open() {
    Book book;
    MK_TRY(book.json, read_json(testing::repository("tests/data/metrics/tensors.json")));
    const auto read = read_text(testing::repository("tests/data/metrics/tensors.safetensors"));
    if (!read) return tl::make_unexpected(read.error());
    const std::string& file = *read;
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    MK_TRY(const auto header, parse_json(std::string_view(file).substr(8, length), "tensors.safetensors"));
    for (const auto& [key, entry] : header.items()) {
      if (!entry.contains("data_offsets")) continue;
      const auto begin = entry["data_offsets"][0].get<std::size_t>();
      std::vector<float> values((entry["data_offsets"][1].get<std::size_t>() - begin) / 4);
      std::memcpy(values.data(), file.data() + 8 + length + begin, values.size() * 4);
      book.tensors[key].assign(values.begin(), values.end());
    }
    return book;
  }
  std::vector<double> values(const Json& tensor) const {
    if (tensor.contains("key")) return tensors.at(tensor["key"].get<std::string>());
    std::vector<double> flat;
    flatten(tensor["values"], flat);
    return flat;
  }
  Json json;
  std::map<std::string, std::vector<double>> tensors;

 private:
  static void flatten(const Json& json, std::vector<double>& flat) {
    if (!json.is_array()) return flat.push_back(number(json));
    for (const Json& item : json) flatten(item, flat);
  }
};

void expect_number(double actual, const Json& golden, double tolerance, const std::string& what) {
  const double expected = number(golden);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(actual, expected) << what;
  } else {
    EXPECT_NEAR(actual, expected, tolerance * std::max(1.0, std::fabs(expected))) << what;
  }
}

TEST(Similarity, EqualsTheDefinitionInNumpy) {
  ASSERT_OK_AND(const auto book, Book::open());
  int checked = 0;
  for (const Json& golden : book.json["cases"]) {
    if (golden["metric"] != "similarity" || !golden.contains("expected")) continue;
    SCOPED_TRACE(golden["name"].get<std::string>());
    ++checked;
    const Json& expected = golden["expected"];
    const double tolerance = golden["tolerance"].get<double>();
    std::vector<Similarity> found;
    for (const Json& sample : golden["input"]["samples"])
      found.push_back(similarity(book.values(sample["reference"]), book.values(sample["candidate"])));
    for (const MetricRow& row : all_metrics) {
      const std::string name(row.name);
      std::vector<double> values;
      for (std::size_t i = 0; i < found.size(); ++i) {
        values.push_back(found[i][row.metric]);
        expect_number(values.back(), expected["per_sample"][i][name], tolerance, name);
      }
      const MetricSummary summary = summarize(values);
      expect_number(summary.mean, expected[name + "_mean"], tolerance, name + "_mean");
      expect_number(summary.std, expected[name + "_std"], tolerance, name + "_std");
      expect_number(summary.min, expected[name + "_min"], tolerance, name + "_min");
      expect_number(summary.max, expected[name + "_max"], tolerance, name + "_max");
      EXPECT_EQ(summary.non_finite, expected["non_finite"][name].get<std::size_t>()) << name;
    }
  }
  EXPECT_EQ(checked, 26);
}

TEST(Similarity, OfNothingIsPerfect) {
  const Similarity s = similarity({}, {});
  EXPECT_EQ(s[Metric::sqnr_db], INFINITY);
  EXPECT_EQ(s[Metric::cosine_similarity], 1);
  EXPECT_EQ(s[Metric::max_abs_diff], 0);
}

}  // namespace
}  // namespace mk
