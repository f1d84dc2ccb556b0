#pragma once
// What the tests of quantization share: models with weights in ONNX's text syntax, samples, and runs in ONNX Runtime.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "graph/onnx_writer.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "quantize/qdq.h"
#include "quantize/tensor_ranges.h"
#include "runtime/session.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk::testing {

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = low + (high - low) * static_cast<float>(random() >> 8) / static_cast<float>(1u << 24);
  return values;
}

// "float[2,3] w = {...}", for the list of initializers of a graph's text.
inline std::string constant_text(const std::string& name, const std::vector<std::int64_t>& dims,
                                 const std::vector<float>& values) {
  std::string text = "float[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  text += "] " + name + " = {";
  if (dims.empty()) text = "float " + name + " = {";
  for (std::size_t i = 0; i < values.size(); ++i) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(values[i]));
    if (std::string_view(buffer).find_first_of(".e") == std::string_view::npos) std::strcat(buffer, ".0");
    text += (i ? "," : "") + std::string(buffer);
  }
  return text + "}";
}

inline HostTensor floats(std::string name, std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return host_tensor<float>(std::move(name), DataType::float32, std::move(dims), std::span<const float>(values));
}

using Samples = std::vector<std::vector<HostTensor>>;

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

class QuantizeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }

  // The values of the output of that name, or of the first one.
  static Result<std::vector<float>> run(const Model& model, const std::vector<HostTensor>& inputs,
                                        GraphOptimization optimization = GraphOptimization::none,
                                        std::string_view wanted = {}) {
    MK_CHECK(verify(model));
    MK_TRY(const std::string bytes, serialize_onnx(model));
    MK_TRY(const Session session,
           Session::open_bytes(runtime_, bytes, {.intra_op_threads = 1, .optimization = optimization}));
    MK_TRY(const auto outputs, session.run(inputs));
    for (const HostTensor& output : outputs) {
      if (!wanted.empty() && output.name != wanted) continue;
      const auto values = output.values<float>();
      return std::vector<float>(values.begin(), values.end());
    }
    return fail(ErrorCode::not_found, "no such output");
  }

  // The ranges of all float32 values of the main graph.
  static Result<TensorRanges> observe(const Model& model, const Samples& samples) {
    const auto copy = clone(model);
    MK_CHECK(infer_shapes(*copy));
    for (Node* node : copy->graph->nodes()) {
      for (Value* output : node->outputs()) {
        if (output && !output->is_graph_output() && output->type.is_tensor() &&
            output->type.element == DataType::float32)
          copy->graph->mark_output(output);
      }
    }
    MK_TRY(const std::string bytes, serialize_onnx(*copy));
    MK_TRY(const Session session, Session::open_bytes(runtime_, bytes, {.optimization = GraphOptimization::none}));
    TensorRanges ranges;
    const auto add = [&](const HostTensor& tensor) {
      if (tensor.type != DataType::float32) return;
      for (const float value : tensor.values<float>()) {
        const auto [entry, added] = ranges.try_emplace(tensor.name, TensorRange{value, value});
        entry->second.low = std::min(entry->second.low, value);
        entry->second.high = std::max(entry->second.high, value);
      }
    };
    for (const auto& sample : samples) {
      MK_TRY(const auto outputs, session.run(sample));
      for (const HostTensor& tensor : sample) add(tensor);
      for (const HostTensor& tensor : outputs) add(tensor);
    }
    return ranges;
  }

  struct Quantized {
    std::unique_ptr<Model> model;
    QdqReport report;
    TensorRanges ranges;
  };

  // Calibrated on the samples.
  static Result<Quantized> quantize(const std::string& text, const Samples& samples, const QdqOptions& options = {}) {
    MK_TRY(auto model, model_of_text(text));
    MK_TRY(auto ranges, observe(*model, samples));
    MK_TRY(auto report, insert_qdq(*model, ranges, options));
    return Quantized{std::move(model), std::move(report), std::move(ranges)};
  }

  // How far the quantized model is at most from the float one on the samples, as it is and as the runtime fuses it.
  static Result<double> error_of(const std::string& text, const Model& quantized, const Samples& samples,
                                 std::string_view output = {}) {
    MK_TRY(const auto original, model_of_text(text));
    double largest = 0;
    for (const auto& sample : samples) {
      MK_TRY(const auto expected, run(*original, sample, GraphOptimization::none, output));
      for (const auto optimization : {GraphOptimization::none, GraphOptimization::all}) {
        MK_TRY(const auto actual, run(quantized, sample, optimization, output));
        largest = std::max(largest, largest_difference(expected, actual));
      }
    }
    return largest;
  }

  // Of a model quantized on the samples that it is judged on; ONNX's checker has to accept it.
  static Result<double> error_after(const std::string& text, const Samples& samples, const QdqOptions& options = {},
                                    QdqReport* report = nullptr) {
    MK_TRY(const auto quantized, quantize(text, samples, options));
    MK_CHECK(check_onnx(*quantized.model));
    if (report) *report = quantized.report;
    return error_of(text, *quantized.model, samples);
  }

  static inline std::shared_ptr<Runtime> runtime_;
};

inline std::size_t count_nodes(const Model& model, std::string_view op_type) {
  std::size_t count = 0;
  for_each_node(*model.graph, [&](const Node& node) { count += node.op_type == op_type; });
  return count;
}

inline const Node* find_node(const Model& model, std::string_view op_type) {
  const Node* found = nullptr;
  for_each_node(*model.graph, [&](const Node& node) {
    if (!found && node.op_type == op_type) found = &node;
  });
  return found;
}

}  // namespace mk::testing
