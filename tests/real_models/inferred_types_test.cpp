// What inference says of every value, against what ONNX Runtime computes: the same element type and rank, known
// dimensions that are those computed, and expressions that have their value for the symbols of the inputs. All that the
// models declare of values inside is thrown away first.

#include <cctype>
#include <charconv>
#include <map>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "published_models.h"
#include "runtime/session.h"
#include "testing/testing.h"

namespace mk {
namespace {

// The value of a dimension's text, "2*h + 1" or "floor((min(512, seq) + 1)/2)", by recursive descent.
class Evaluator {
 public:
  Evaluator(std::string_view text, std::map<std::string, std::int64_t, std::less<>>& symbols)
      : text_(text), symbols_(symbols) {}

  // Nothing where it has a symbol without a value. A symbol alone is given `otherwise`.
  std::optional<std::int64_t> value(std::int64_t otherwise) {
    if (text_.find_first_of("+-*( ") == std::string_view::npos && !std::isdigit(static_cast<unsigned char>(text_[0]))) {
      return symbols_.try_emplace(std::string(text_), otherwise).first->second;
    }
    const std::int64_t total = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return known_ ? std::optional(total) : std::nullopt;
  }

 private:
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::int64_t sum() {
    std::int64_t total = take("-") ? -product() : product();
    while (true) {
      if (take(" + ")) {
        total += product();
      } else if (take(" - ")) {
        total -= product();
      } else {
        return total;
      }
    }
  }
  std::int64_t product() {
    std::int64_t total = factor();
    while (take("*")) total *= factor();
    return total;
  }
  std::int64_t factor() {
    if (take("floor(")) {
      const std::int64_t above = take("(") ? inside() : product();
      EXPECT_TRUE(take("/")) << text_;
      const std::int64_t below = factor();
      EXPECT_TRUE(take(")")) << text_;
      return above >= 0 ? above / below : -((below - 1 - above) / below);
    }
    if (take("min(")) {
      const std::int64_t first = sum();
      EXPECT_TRUE(take(", ")) << text_;
      return std::min(first, inside());
    }
    const std::size_t start = at_;
    while (at_ < text_.size() && std::string_view("+-*/(), ").find(text_[at_]) == std::string_view::npos) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    std::int64_t number = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), number).ptr == word.data() + word.size()) return number;
    const auto symbol = symbols_.find(word);
    known_ &= symbol != symbols_.end();
    return symbol != symbols_.end() ? symbol->second : 1;
  }
  std::int64_t inside() {
    const std::int64_t total = sum();
    EXPECT_TRUE(take(")")) << text_;
    return total;
  }

  std::string_view text_;
  std::map<std::string, std::int64_t, std::less<>>& symbols_;
  std::size_t at_ = 0;
  bool known_ = true;
};

class InferredTypes : public ::testing::TestWithParam<PublishedModel> {};

TEST_P(InferredTypes, AreThoseOfTheRun) {
  const Path path = GetParam().path();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there: run tools/bootstrap all-models";
  ASSERT_OK_AND(auto model, read_onnx(path));
  Graph& graph = *model->graph;
  for_each_node(graph, [](const Node& node) {
    for (Value* output : node.outputs()) {
      if (output && !output->is_graph_output()) output->type = {};
    }
  });
  ASSERT_OK_AND(const auto report, infer_shapes(*model));
  for (const InferenceNote& note : report.notes) ADD_FAILURE() << note.node << ": " << note.message;
  ASSERT_OK(check_onnx(*model));

  for (const Node* node : graph.nodes()) {
    for (Value* output : node->outputs()) {
      if (output && !output->is_graph_output()) graph.mark_output(output);
    }
  }
  ASSERT_OK_AND(const std::string bytes, serialize_onnx(*model));
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  ASSERT_OK_AND(const auto session, Session::open_bytes(runtime, bytes, {.optimization = GraphOptimization::none}));
  const std::vector<HostTensor> inputs = GetParam().inputs();
  ASSERT_OK_AND(const auto computed, session.run(inputs));

  std::map<std::string, std::int64_t, std::less<>> symbols;
  const auto expect_type = [&](const HostTensor& tensor) {
    const Type& type = graph.find(tensor.name)->type;
    EXPECT_EQ(type.element, tensor.type) << tensor.name;
    ASSERT_TRUE(type.is_tensor()) << tensor.name;
    if (!type.shape) return;
    ASSERT_EQ(type.shape->size(), tensor.dims.size()) << tensor.name;
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
      const Dim& dim = (*type.shape)[i];
      const auto value = dim.is_known() ? dim.value : Evaluator(dim.symbol, symbols).value(tensor.dims[i]);
      EXPECT_EQ(value.value_or(tensor.dims[i]), tensor.dims[i]) << tensor.name << ' ' << to_string(type);
    }
  };
  for (const HostTensor& input : inputs) expect_type(input);
  for (const HostTensor& output : computed) expect_type(output);
}

INSTANTIATE_TEST_SUITE_P(Packages, InferredTypes, ::testing::ValuesIn(published_models()), title_of);

}  // namespace
}  // namespace mk
