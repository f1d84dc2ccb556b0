#include "catalog/catalog.h"

#include <set>

#include "testing/testing.h"

namespace mk {
namespace {

std::size_t count(const CatalogFilter& filter) { return find_in_catalog(filter).size(); }

bool keeps_resnet50(const CatalogFilter& filter) {
  for (const CatalogEntry* entry : find_in_catalog(filter))
    if (entry->model_id == "microsoft/resnet-50") return true;
  return false;
}

// The contract counts them.
TEST(Catalog, EntriesByTaskAndType) {
  EXPECT_EQ(catalog().size(), 66u);
  std::set<std::string_view> ids;
  for (const CatalogEntry& entry : catalog()) ids.insert(entry.model_id);
  EXPECT_EQ(ids.size(), 55u);
  const std::vector<std::pair<std::string, std::size_t>> tasks{
      {"feature-extraction", 12},      {"sentence-similarity", 9},
      {"image-classification", 8},     {"fill-mask", 7},
      {"question-answering", 6},       {"token-classification", 5},
      {"image-feature-extraction", 5}, {"text-classification", 4},
      {"image-segmentation", 4},       {"image-to-text", 3},
      {"zero-shot-classification", 1}, {"zero-shot-image-classification", 1},
      {"mask-generation", 1}};
  for (const auto& [task, expected] : tasks) EXPECT_EQ(count({.task = task}), expected) << task;
  const std::vector<std::pair<std::string, std::size_t>> types{
      {"bert", 21},       {"roberta", 6},     {"vit", 6},
      {"xlm-roberta", 5}, {"distilbert", 5},  {"clip", 4},
      {"segformer", 4},   {"mpnet", 4},       {"vision-encoder-decoder", 3},
      {"resnet", 2},      {"sam3_tracker", 2}};
  for (const auto& [type, expected] : types) EXPECT_EQ(count({.model_type = type}), expected) << type;
}

TEST(Catalog, Filters) {
  EXPECT_TRUE(keeps_resnet50({.ep = find_ep("qnn")}));
  EXPECT_TRUE(keeps_resnet50({.ep = find_ep("QNNExecutionProvider")}));
  EXPECT_TRUE(keeps_resnet50({.ep = find_ep("nvtensorrtrtx")}));
  EXPECT_TRUE(keeps_resnet50({.device = DeviceKind::npu}));
  EXPECT_FALSE(keeps_resnet50({.ep = find_ep("qnn"), .device = DeviceKind::cpu}));
  EXPECT_TRUE(keeps_resnet50({.model_type = "ResNet"}));
  EXPECT_FALSE(keeps_resnet50({.model_type = "res"}));
  EXPECT_TRUE(keeps_resnet50({.task = "Image-Classification", .ep = find_ep("migraphx")}));
  EXPECT_EQ(count({.model_type = "sam3_tracker", .device = DeviceKind::npu}), 0u);
}

TEST(Catalog, EveryProviderIsInTheTable) {
  for (const CatalogEntry& entry : catalog())
    for (const CatalogSupport& support : entry.support) EXPECT_NE(find_ep(support.ep), nullptr) << support.key;
}

}  // namespace
}  // namespace mk
