// check_onnx: the onnx library's checker and its strict inference, over a skeleton of the model: initializers of some
// size are inputs, large constants inside are filled by ConstantOfShape.

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <string>
#include <utility>

#include "graph/einsum_equation.h"
#include "graph/onnx_writer.h"
#include "graph/verifier.h"

namespace mk {
namespace {

constexpr std::uint64_t max_inline = 1024;  // bytes

bool is_large(const Tensor* tensor) { return tensor && tensor->sparse.empty() && tensor->byte_count() > max_inline; }

// Whether ConstantOfShape can make tensors of a type.
bool can_fill(DataType type, std::int64_t opset) {
  switch (type) {
    case DataType::bfloat16:
    case DataType::float8e4m3fn:
    case DataType::float8e4m3fnuz:
    case DataType::float8e5m2:
    case DataType::float8e5m2fnuz:
      return opset >= 20;
    case DataType::uint4:
    case DataType::int4:
      return opset >= 21;
    case DataType::float4e2m1:
      return opset >= 23;
    case DataType::float8e8m0:
      return opset >= 24;
    case DataType::uint2:
    case DataType::int2:
      return opset >= 25;
    case DataType::undefined:
    case DataType::string:
    case DataType::complex64:
    case DataType::complex128:
      return false;
    default:
      return opset >= 9;
  }
}

Value* fill(Graph& graph, const Tensor& like, Node* before) {
  Value* shape = graph.add_value(graph.unique_name("skeleton_shape"));
  Node* dims = graph.add_node("Constant", {}, {shape}, before);
  dims->set_attribute({"value", int64_tensor({}, like.dims)});
  Value* filled = graph.add_value(graph.unique_name("skeleton_fill"));
  Node* node = graph.add_node("ConstantOfShape", {shape}, {filled}, before);
  const std::vector<std::byte> zero(16);
  const auto bytes = byte_size(like.type, 1).value_or(0);
  node->set_attribute(
      {"value", make_tensor({}, like.type, {1},
                            owned_bytes({zero.begin(), zero.begin() + static_cast<std::ptrdiff_t>(bytes)}))});
  return filled;
}

void replace(Graph& graph, Value* from, Value* to) {
  graph.replace_uses(from, to, /*outputs=*/true);
  const std::string name = from->name();
  if (Node* producer = from->producer()) {
    to->producer()->name = producer->name;
    graph.erase(producer);
  } else {
    graph.erase_unused(from);
  }
  graph.rename(to, name);
}

void hollow(Graph& graph, std::int64_t opset) {
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    const Tensor* tensor = value->initializer();
    if (!is_large(tensor)) continue;
    if (!graph.parent()) {
      graph.remove_initializer(value);
      if (!value->is_graph_input()) graph.mark_input(value);
    } else if (!value->is_graph_input() && can_fill(tensor->type, opset)) {
      replace(graph, value, fill(graph, *tensor, graph.nodes().empty() ? nullptr : graph.nodes().front()));
    }
  }
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    Node* node = *at++;
    for (Graph* inner : node->subgraphs()) hollow(*inner, opset);
    const Attribute* value = node->op_type == "Constant" ? node->attribute("value") : nullptr;
    const auto* held = value ? std::get_if<std::shared_ptr<const Tensor>>(&value->value) : nullptr;
    const std::shared_ptr<const Tensor> tensor = held ? *held : nullptr;
    if (!is_large(tensor.get()) || !node->output(0) || !can_fill(tensor->type, opset)) continue;
    replace(graph, node->output(0), fill(graph, *tensor, node));
  }
}

std::int64_t opset_of(const Function& function) {
  for (const auto& [domain, version] : function.opset_imports) {
    if (domain.empty() || domain == "ai.onnx") return version;
  }
  return 0;
}

// What the library cannot be given: operators that its checker greets with a line on standard output, equations on
// which its shape function does not end.
Status prepare(Graph& graph) {
  Status status;
  for_each_node(graph, [&](Node& node) {
    if (!status) return;
    onnx::NodeProto proto;
    proto.set_op_type(node.op_type);
    proto.set_domain(node.domain);
    if (onnx::checker::check_is_experimental_op(proto)) {
      status =
          fail(ErrorCode::malformed, node.op_type + " is an experimental operator that ONNX has removed", node.label());
    }
    const Attribute* attribute = node.op_type == "Einsum" ? node.attribute("equation") : nullptr;
    const auto* text = attribute ? std::get_if<std::string>(&attribute->value) : nullptr;
    if (!text) return;
    auto equation = plain_einsum_equation(*text);
    if (!equation) {
      status = fail(ErrorCode::malformed, "the equation '" + *text + "' of Einsum is not one", node.label());
    } else {
      node.set_attribute({"equation", std::move(*equation)});
    }
  });
  return status;
}

// "... Name: encoder/add OpType: Add ..." or "... node name: encoder/add): ...": the node that a message names.
std::string named_node(const std::string& message) {
  for (const auto& [before, after] : {std::pair<std::string_view, std::string_view>{"Name: ", " OpType: "},
                                      {"name: ", " OpType: "},
                                      {"node name: ", "): "}}) {
    const std::size_t start = message.find(before);
    if (start == std::string::npos) continue;
    const std::size_t end = message.find(after, start);
    if (end != std::string::npos) return message.substr(start + before.size(), end - start - before.size());
  }
  return {};
}

std::string one_line(std::string message) {
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  while (message.ends_with(' ') || message.ends_with('.')) message.pop_back();
  return message;
}

tl::unexpected<Error> refused(const std::exception& error) {
  const std::string message = error.what();
  return fail(ErrorCode::malformed, "ONNX's checker: " + one_line(message), named_node(message));
}

}  // namespace

Status check_onnx(const Model& model) {
  const std::unique_ptr<Model> skeleton = clone(model);
  MK_CHECK(prepare(*skeleton->graph));
  hollow(*skeleton->graph, skeleton->opset());
  for (Function& function : skeleton->functions) {
    if (!function.body) continue;
    MK_CHECK(prepare(*function.body));
    hollow(*function.body, opset_of(function));
  }
  MK_TRY(const std::string bytes, serialize_onnx(*skeleton));
  try {
    onnx::ModelProto proto;
    if (!proto.ParseFromString(bytes)) {
      return fail(ErrorCode::malformed, "protobuf cannot read the model as it would be written");
    }
    onnx::checker::check_model(proto);
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(/*check_type=*/true, /*strict=*/1, false));
  } catch (const std::exception& error) {
    return refused(error);
  } catch (...) {
    return fail(ErrorCode::malformed, "ONNX's checker failed");
  }
  return {};
}

}  // namespace mk
