#include "export/report_files.h"

#include <set>

#include "base/json.h"
#include "base/progress.h"
#include "testing/testing.h"

namespace mk {
namespace {

class ReportFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const ExportRequest request{.folder = testing::repository("samples/digits-vit"), .model_id = "a|b"};
    ASSERT_OK_AND(exported, export_graph(request, silent_progress()));
  }
  ExportedGraph exported;
  ReportFacts facts{.model_id = "a|b",
                    .output = "out/m.onnx",
                    .model_bytes = 2097152,
                    .seconds = 0.5,
                    .timestamp = "2026-11-30T00:00:00Z"};
};

// The tree of transformers' ViTForImageClassification: what runs first stands first, and inside what holds it.
TEST_F(ReportFiles, ModulesAreATreeInTheOrderTheyRun) {
  const Json report = metadata_report(exported, facts);
  const Json& root = report["modules"];
  EXPECT_EQ(root["class_name"], "ViTForImageClassification");
  EXPECT_EQ(root["scope"], "");
  const Json& layer = root["children"]["ViTModel"]["children"]["ViTEncoder"]["children"]["ViTLayer.1"];
  EXPECT_EQ(layer["traced_tag"], "/ViTForImageClassification/ViTModel/ViTEncoder/ViTLayer.1");
  EXPECT_EQ(layer["scope"], "vit.encoder.layer.1");
  EXPECT_TRUE(layer["children"]["ViTIntermediate"]["children"].contains("GELUActivation"));
  EXPECT_LT(layer["children"]["ViTIntermediate"]["children"]["GELUActivation"]["execution_order"],
            layer["children"]["ViTOutput"]["execution_order"]);
}

TEST_F(ReportFiles, EveryNodeHasATag) {
  const Json report = metadata_report(exported, facts);
  EXPECT_EQ(report["statistics"]["empty_tags"], 0);
  EXPECT_EQ(report["statistics"]["coverage_percentage"], 100.0);
  EXPECT_EQ(report["nodes"].size(), report["statistics"]["onnx_nodes"]);
  for (const auto& node : report["nodes"].items()) EXPECT_EQ(std::string(node.value()).substr(0, 1), "/") << node.key();
  EXPECT_EQ(report["outputs"]["onnx_model"]["size_mb"], 2.0);
  EXPECT_EQ(report["tracing"]["inputs"]["pixel_values"]["dtype"], "torch.float32");
}

// The torch.nn layers of transformers' ViT, by their names there: their nodes have the tag of what holds them.
TEST_F(ReportFiles, CountsNodesOfPlainLayersApart) {
  const std::set<std::string> layers{"query",           "key",       "value",      "dense",     "layernorm_before",
                                     "layernorm_after", "layernorm", "projection", "classifier"};
  const Json report = metadata_report(exported, facts);
  std::size_t in_layers = 0;
  for (const auto& node : report["nodes"].items()) {
    const std::string path = node.key().substr(0, node.key().rfind('/'));
    in_layers += layers.contains(path.substr(path.rfind('/') + 1)) ? 1 : 0;
  }
  const Json& statistics = report["report"]["steps"]["node_tagging"]["statistics"];
  EXPECT_GT(in_layers, 20u);
  EXPECT_EQ(statistics["parent_matches"], in_layers);
  EXPECT_EQ(statistics["direct_matches"], report["nodes"].size() - in_layers);
}

TEST_F(ReportFiles, MarkdownEscapesAndHasItsSections) {
  const std::string text = markdown_report(exported, facts);
  for (const char* part :
       {"# HTP ONNX Export Report", "a\\|b", "Step 1/6: Model Preparation", "Step 6/6: Tag Injection",
        "## Module Hierarchy", "## Complete Node Mappings", "## Export Summary"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace mk
