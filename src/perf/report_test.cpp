#include "perf/report.h"

#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

PerfReport example() {
  PerfReport r;
  r.model_id = "model.onnx";
  r.running_model_path = "model.onnx";
  r.device = "cpu";
  r.ep = "CPUExecutionProvider";
  r.ep_short_name = "cpu";
  r.ep_source = "bundled";
  r.ep_options = {{"a", "b=c"}};
  r.warmup = 2;
  r.batch_size = 4;
  r.effective_batch_size = 2;
  r.timestamp = "2026-11-30T19:50:52.123456+00:00";
  r.inputs = {{"x", Type::tensor(DataType::float32, Shape{Dim::symbolic("batch"), Dim::known(3), Dim{}})}};
  r.outputs = {{"y", Type::tensor(DataType::int64)}};
  r.dynamic = {{"batch", 2}, {"x[2]", 224}};
  r.input_dims = {{2, 3, 224}};
  r.opset = 17;
  r.samples_ms = {1.0004, 3.001};
  r.latency = latency_statistics(std::vector<double>{9, 7, 1.0004, 3.001}, 2);
  r.memory = MemoryUse{10u << 20, 25u << 20, (25u << 20) + (1u << 19)};
  return r;
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [key, ignored] : json.items()) names.push_back(key);
  return names;
}

TEST(PerfReport, JsonHasTheKeysOfSchemaTwoInOrder) {
  const Json json = perf_json(example());
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys(json), (Names{"schema_version", "benchmark_info", "model_info", "latency_ms", "throughput",
                               "raw_samples_ms", "memory"}));
  EXPECT_EQ(keys(json["benchmark_info"]), (Names{"runtime", "model_id", "running_model_path", "task", "device", "ep",
                                                 "ep_source", "ep_options", "precision", "iterations", "warmup",
                                                 "duration_sec", "batch_size", "effective_batch_size", "timestamp"}));
  EXPECT_EQ(keys(json["model_info"]), (Names{"input_names", "output_names", "input_shapes", "output_shapes",
                                             "input_types", "precision", "dynamic_dims"}));
  EXPECT_EQ(keys(json["latency_ms"]), (Names{"mean", "min", "max", "p50", "p90", "p95", "p99", "std", "warmup_mean"}));
  EXPECT_EQ(json["memory"].size(), 21u);
}

TEST(PerfReport, JsonValues) {
  const Json json = perf_json(example());
  EXPECT_EQ(json["benchmark_info"]["iterations"], 2);
  EXPECT_TRUE(json["benchmark_info"]["task"].is_null());
  EXPECT_EQ(json["benchmark_info"]["ep_options"]["a"], "b=c");
  EXPECT_EQ(json["model_info"]["input_shapes"], Json::parse(R"([["batch", 3, null]])"));
  EXPECT_EQ(json["model_info"]["output_shapes"], Json::parse("[[]]"));
  EXPECT_EQ(json["model_info"]["input_types"][0], "float32");
  EXPECT_EQ(json["model_info"]["dynamic_dims"]["x[2]"], 224);
  EXPECT_EQ(json["latency_ms"]["mean"], 2.001);  // 2.0007
  EXPECT_EQ(json["latency_ms"]["warmup_mean"], 8.0);
  EXPECT_EQ(json["throughput"]["batches_per_sec"], 499.83);  // 1000 / 2.0007
  EXPECT_EQ(json["throughput"]["samples_per_sec"], 999.65);
  EXPECT_EQ(json["raw_samples_ms"], Json::parse("[1.0, 3.001]"));
  EXPECT_EQ(json["memory"]["rss_baseline_mb"], 10.0);
  EXPECT_EQ(json["memory"]["rss_checkpoint_peak_mb"], 25.5);
  EXPECT_EQ(json["memory"]["rss_model_load_delta_mb"], 15.0);
  EXPECT_EQ(json["memory"]["rss_total_delta_mb"], 15.5);
  EXPECT_TRUE(json["memory"]["vram_local_baseline_mb"].is_null());
}

TEST(PerfReport, WhatWasNotMeasuredIsNull) {
  PerfReport r = example();
  r.warmup = 0;
  r.memory = MemoryUse{};
  const Json json = perf_json(r);
  EXPECT_TRUE(json["latency_ms"]["warmup_mean"].is_null());
  for (const auto& [key, value] : json["memory"].items()) EXPECT_TRUE(value.is_null()) << key;
  r.memory.reset();
  EXPECT_FALSE(perf_json(r).contains("memory"));
  EXPECT_EQ(perf_text(r).find("Warmup"), std::string::npos);
}

TEST(PerfReport, TextShowsWhatDynamicDimensionsWere) {
  const std::string header = perf_header(example());
  EXPECT_NE(header.find("x   [dynamic(2), 3, dynamic(224)]   float32"), std::string::npos) << header;
  EXPECT_NE(header.find("batch=2, x[2]=224"), std::string::npos);
  EXPECT_EQ(header.find("None"), std::string::npos);
  EXPECT_EQ(header.find("auto"), std::string::npos);
  const std::string text = perf_text(example());
  EXPECT_NE(text.find("Throughput: 999.65 samples/sec (batch 2)"), std::string::npos) << text;
  EXPECT_NE(text.find("Note: the model ran with batch 2, not the 4 asked for"), std::string::npos);
  EXPECT_NE(text.find("RAM: 10.00 MB -> model load: +15.00 MB | inference: +0.50 MB | total: +15.50 MB"),
            std::string::npos);
}

TEST(Baseline, SlowerByMoreThanTheLimit) {
  testing::TemporaryFolder folder;
  PerfReport r = example();
  const Path file = folder.write("before.json", dump_json(perf_json(r)));
  r.latency.p50 = 2.001 * 1.09;
  ASSERT_OK_AND(const auto baseline, read_baseline(file));
  const BaselineVerdict within = judge_against(baseline, r, 10);
  EXPECT_FALSE(within.slower());
  EXPECT_NEAR(within.change_percent, 9, 1e-9);
  EXPECT_TRUE(within.differences.empty());
  r.latency.p50 = 2.001 * 1.2;
  r.effective_batch_size = 4;
  const BaselineVerdict beyond = judge_against(baseline, r, 10);
  EXPECT_TRUE(beyond.slower());
  EXPECT_EQ(beyond.differences, std::vector<std::string>{"effective_batch_size is 4, was 2"});
  for (const char* bad : {"{}", "[1]", R"({"latency_ms":{"p50":null}})", R"({"latency_ms":{"p50":0}})", "no json"}) {
    const auto read = read_baseline(folder.write("bad.json", bad));
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, ErrorCode::usage) << bad;
  }
}

}  // namespace
}  // namespace mk
