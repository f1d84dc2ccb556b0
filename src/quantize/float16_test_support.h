#pragma once
// What the tests of the float16 conversion share.

#include <memory>
#include <string>

#include "quantize/float16.h"
#include "quantize/qdq_test_support.h"

namespace mk::testing {

class Float16Test : public QuantizeTest {
 protected:
  struct Converted {
    std::unique_ptr<Model> before, model;
    Float16Report report;

    // "float16", "float32" ...; "none" where there is no such value in the main graph.
    std::string type(std::string_view name) const {
      const Value* value = model->graph->find(name);
      return value ? std::string(name_of(value->type.element)) : "none";
    }
    std::string reason(std::string_view node) const {
      for (const Float16KeptNode& kept : report.kept) {
        if (kept.node == node) return kept.reason;
      }
      return {};
    }
  };

  // The result is valid by our verifier and by ONNX's, and converting it again changes nothing.
  static Result<Converted> convert(const std::string& text, const Float16Options& options = {}) {
    Converted result;
    MK_TRY(result.before, model_of_text(text));
    result.model = clone(*result.before);
    MK_TRY(result.report, convert_to_float16(*result.model, options));
    MK_CHECK(verify(*result.model));
    MK_CHECK(check_onnx(*result.model));
    MK_TRY(const std::string once, serialize_onnx(*result.model));
    const auto again = clone(*result.model);
    MK_CHECK(convert_to_float16(*again, options));
    MK_TRY(const std::string twice, serialize_onnx(*again));
    if (once != twice) return fail(ErrorCode::failed, "converting twice is not converting once");
    MK_CHECK(infer_shapes(*result.model));
    return result;
  }

  // "" where ONNX Runtime gives the same outputs from both, of the same types and shapes, floats within `tolerance` of
  // the largest magnitude.
  static std::string difference(const Converted& c, const std::vector<HostTensor>& inputs, double tolerance = 2e-3) {
    // What the model says before, not what the runtime makes of quantized weights.
    const auto run_all = [&](const Model& model, GraphOptimization optimization) -> Result<std::vector<HostTensor>> {
      MK_TRY(const std::string bytes, serialize_onnx(model));
      MK_TRY(const Session session,
             Session::open_bytes(runtime_, bytes, {.intra_op_threads = 1, .optimization = optimization}));
      return session.run(inputs);
    };
    const auto expected = run_all(*c.before, GraphOptimization::none);
    if (!expected) return "before: " + expected.error().to_string();
    const auto actual = run_all(*c.model, GraphOptimization::all);
    if (!actual) return "after: " + actual.error().to_string();
    for (std::size_t i = 0; i < expected->size(); ++i) {
      const HostTensor& a = (*expected)[i];
      const HostTensor& b = (*actual)[i];
      if (a.name != b.name || a.type != b.type || a.dims != b.dims) return a.name + " is of another type or shape";
      if (a.type != DataType::float32) {
        if (a.data != b.data) return a.name + " differs";
        continue;
      }
      double scale = 1e-6;
      for (const float value : a.values<float>()) {
        if (std::isfinite(value)) scale = std::max(scale, std::abs(static_cast<double>(value)));
      }
      const double largest = largest_difference(a.values<float>(), b.values<float>());
      if (!(largest <= tolerance * scale)) return a.name + " differs by " + std::to_string(largest);
    }
    return {};
  }
};

inline HostTensor longs(std::string name, std::vector<std::int64_t> dims, std::vector<std::int64_t> values) {
  return host_tensor<std::int64_t>(std::move(name), DataType::int64, std::move(dims), values);
}

// A model in ONNX's text syntax: its graph, with IR 8 and an opset.
inline std::string at_opset(int opset, const std::string& graph, const std::string& imports = {}) {
  return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + imports + "]>\n" + graph;
}

}  // namespace mk::testing
