#include "graph/onnx_writer_messages.h"

#include <algorithm>
#include <type_traits>

#include "graph/onnx_fields.h"

namespace mk {
namespace {

class MessageWriter {
 public:
  MessageWriter(WireWriter& out, const ExternalLayout* layout) : out_(out), layout_(layout) {}

  void write(const Model& model) {
    namespace f = onnx_field::model;
    out_.integer(f::ir_version, ir_version(model));
    out_.text_unless_empty(f::producer_name, model.producer_name);
    out_.text_unless_empty(f::producer_version, model.producer_version);
    out_.text_unless_empty(f::domain, model.domain);
    if (model.model_version != 0) out_.integer(f::model_version, model.model_version);
    out_.text_unless_empty(f::doc_string, model.doc_string);
    out_.message(f::graph, [&] { write(*model.graph); });
    write(f::opset_import, model.opset_imports);
    write(f::metadata, model.metadata);
    for (const Function& function : model.functions) out_.message(f::functions, [&] { write(function); });
    out_.raw(model.unknown_fields);
  }

 private:
  // Before IR version 4 every initializer was an input.
  static std::int64_t ir_version(const Model& model) {
    if (model.ir_version >= 4) return model.ir_version;
    const auto& initializers = model.graph->initializers();
    const bool all_inputs = std::all_of(initializers.begin(), initializers.end(),
                                        [](const Value* value) { return value->is_graph_input(); });
    return all_inputs ? model.ir_version : 4;
  }

  void write(std::uint32_t field, const std::vector<std::pair<std::string, std::int64_t>>& opsets) {
    namespace f = onnx_field::opset;
    for (const auto& [domain, version] : opsets) {
      out_.message(field, [&, &d = domain, v = version] {
        out_.text(f::domain, d);
        out_.integer(f::version, v);
      });
    }
  }

  void write(std::uint32_t field, const Metadata& metadata) {
    for (const auto& [key, value] : metadata) write_entry(field, key, value);
  }

  void write_entry(std::uint32_t field, std::string_view key, std::string_view value) {
    namespace f = onnx_field::entry;
    out_.message(field, [&] {
      out_.text(f::key, key);
      out_.text(f::value, value);
    });
  }

  void write(const Graph& graph) {
    namespace f = onnx_field::graph;
    for (const Node* node : graph.nodes()) out_.message(f::node, [&] { write(*node); });
    out_.text_unless_empty(f::name, graph.name);
    for (const Value* value : graph.initializers()) {
      const Tensor& tensor = *value->initializer();
      if (tensor.sparse.empty()) out_.message(f::initializer, [&] { write(tensor); });
    }
    out_.text_unless_empty(f::doc_string, graph.doc_string);
    for (const Value* value : graph.inputs()) out_.message(f::input, [&] { write(*value); });
    for (const Value* value : graph.outputs()) out_.message(f::output, [&] { write(*value); });
    for (const Value* value : graph.initializers()) {
      if (!value->is_graph_input() && !value->is_graph_output() && has_notes(*value)) {
        out_.message(f::value_info, [&] { write(*value); });
      }
    }
    for (const Node* node : graph.nodes()) write_facts(f::value_info, node->outputs(), false);
    for (const Value* value : graph.initializers()) {
      const Tensor& tensor = *value->initializer();
      if (!tensor.sparse.empty()) out_.message(f::sparse_initializer, [&] { write_sparse(tensor); });
    }
    write(f::metadata, graph.metadata);
    out_.raw(graph.unknown_fields);
  }

  static bool has_notes(const Value& value) {
    return !value.doc_string.empty() || !value.metadata.empty() || !value.unknown_fields.empty();
  }

  void write_facts(std::uint32_t field, const std::vector<Value*>& values, bool graph_outputs_too) {
    for (const Value* value : values) {
      if (!value || (value->is_graph_output() && !graph_outputs_too)) continue;
      if (value->type.kind != Type::Kind::none || has_notes(*value)) out_.message(field, [&] { write(*value); });
    }
  }

  void write(const Value& value) {
    namespace f = onnx_field::value_info;
    out_.text(f::name, value.name());
    if (value.type.kind != Type::Kind::none) out_.message(f::type, [&] { write(value.type); });
    out_.text_unless_empty(f::doc_string, value.doc_string);
    write(f::metadata, value.metadata);
    out_.raw(value.unknown_fields);
  }

  void write(const Type& type) {
    namespace f = onnx_field::type;
    switch (type.kind) {
      case Type::Kind::tensor:
        write_tensor_type(f::tensor, type);
        break;
      case Type::Kind::sparse_tensor:
        write_tensor_type(f::sparse_tensor, type);
        break;
      case Type::Kind::sequence:
        write_inner_type(f::sequence, type);
        break;
      case Type::Kind::optional:
        write_inner_type(f::optional, type);
        break;
      case Type::Kind::map:
        out_.message(f::map, [&] {
          out_.integer(onnx_field::map_type::key_type, static_cast<std::int64_t>(type.element));
          if (type.inner) out_.message(onnx_field::map_type::value_type, [&] { write(*type.inner); });
        });
        break;
      case Type::Kind::opaque:  // in raw
      case Type::Kind::none:
        break;
    }
    out_.text_unless_empty(f::denotation, type.denotation);
    out_.raw(type.raw);
  }

  void write_tensor_type(std::uint32_t field, const Type& type) {
    namespace f = onnx_field::tensor_type;
    out_.message(field, [&] {
      out_.integer(f::elem_type, static_cast<std::int64_t>(type.element));
      if (type.shape) {
        out_.message(f::shape, [&] {
          for (const Dim& dim : *type.shape) out_.message(onnx_field::shape::dim, [&] { write(dim); });
        });
      }
    });
  }

  void write_inner_type(std::uint32_t field, const Type& type) {
    out_.message(field, [&] {
      if (type.inner) out_.message(onnx_field::sequence_type::elem_type, [&] { write(*type.inner); });
    });
  }

  void write(const Dim& dim) {
    namespace f = onnx_field::dimension;
    if (dim.is_known()) {
      out_.integer(f::value, dim.value);
    } else {
      out_.text_unless_empty(f::symbol, dim.symbol);
    }
    out_.text_unless_empty(f::denotation, dim.denotation);
  }

  void write(const Node& node) {
    namespace f = onnx_field::node;
    for (const Value* input : node.inputs()) out_.text(f::input, input ? std::string_view(input->name()) : "");
    for (const Value* output : node.outputs()) out_.text(f::output, output ? std::string_view(output->name()) : "");
    out_.text_unless_empty(f::name, node.name);
    out_.text(f::op_type, node.op_type);
    for (const Attribute& attribute : node.attributes()) out_.message(f::attribute, [&] { write(attribute); });
    out_.text_unless_empty(f::doc_string, node.doc_string);
    out_.text_unless_empty(f::domain, node.domain);
    out_.text_unless_empty(f::overload, node.overload);
    write(f::metadata, node.metadata);
    out_.raw(node.unknown_fields);
  }

  void write(const Attribute& attribute) {
    namespace f = onnx_field::attribute;
    out_.text(f::name, attribute.name);
    std::visit([&](const auto& value) { write_value(value); }, attribute.value);
    out_.text_unless_empty(f::doc_string, attribute.doc_string);
    out_.integer(f::type, static_cast<std::int64_t>(attribute.kind));
    out_.text_unless_empty(f::ref_attr_name, attribute.reference);
    out_.raw(attribute.raw);
  }

  void write_value(std::monostate) {}
  void write_value(float value) { out_.real(onnx_field::attribute::f, value); }
  void write_value(std::int64_t value) { out_.integer(onnx_field::attribute::i, value); }
  void write_value(const std::string& value) { out_.text(onnx_field::attribute::s, value); }
  void write_value(const std::shared_ptr<const Tensor>& value) {
    if (value) out_.message(onnx_field::attribute::t, [&] { write(*value); });
  }
  void write_value(const std::unique_ptr<Graph>& value) {
    if (value) out_.message(onnx_field::attribute::g, [&] { write(*value); });
  }
  void write_value(const std::vector<float>& values) {
    for (const float value : values) out_.real(onnx_field::attribute::floats, value);
  }
  void write_value(const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) out_.integer(onnx_field::attribute::ints, value);
  }
  void write_value(const std::vector<std::string>& values) {
    for (const std::string& value : values) out_.text(onnx_field::attribute::strings, value);
  }
  void write_value(const std::vector<std::shared_ptr<const Tensor>>& values) {
    for (const auto& value : values) out_.message(onnx_field::attribute::tensors, [&] { write(*value); });
  }
  void write_value(const std::vector<std::unique_ptr<Graph>>& values) {
    for (const auto& value : values) out_.message(onnx_field::attribute::graphs, [&] { write(*value); });
  }

  void write(const Tensor& tensor) {
    namespace f = onnx_field::tensor;
    for (const std::int64_t dim : tensor.dims) out_.integer(f::dims, dim);
    out_.integer(f::data_type, static_cast<std::int64_t>(tensor.type));
    for (const std::string& text : tensor.strings) out_.text(f::string_data, text);
    out_.text_unless_empty(f::name, tensor.name);
    const auto place = layout_ ? layout_->places.find(&tensor) : Places::const_iterator();
    const bool placed = layout_ && place != layout_->places.end();
    const bool elsewhere = !placed && !tensor.data && find(tensor.external, "location");
    if (!placed && !elsewhere) write_data(tensor);
    out_.text_unless_empty(f::doc_string, tensor.doc_string);
    if (placed) write_place(tensor, place->second);
    if (elsewhere) write(f::external_data, tensor.external);
    if (placed || elsewhere) out_.varint(f::data_location, 1);
    write(f::metadata, tensor.metadata);
    out_.raw(tensor.unknown_fields);
  }

  void write_data(const Tensor& tensor) {
    if (tensor.type == DataType::string) {
      if (tensor.strings.size() != tensor.element_count()) fail_for(tensor, "has another number of strings");
      return;
    }
    if (!tensor.data) {
      if (tensor.byte_count() > 0) fail_for(tensor, "has no data");
      return;
    }
    if (tensor.data->size() != tensor.byte_count()) return fail_for(tensor, "has data of another size than its shape");
    if (tensor.data->size() > 0) out_.payload(onnx_field::tensor::raw_data, *tensor.data);
  }

  void fail_for(const Tensor& tensor, std::string_view what) {
    out_.set_error({ErrorCode::failed, "tensor " + tensor.name + " " + std::string(what), {}, {}});
  }

  // Entries we have no values for are about the old file.
  void write_place(const Tensor& tensor, const ExternalLayout::Place& place) {
    constexpr std::uint32_t field = onnx_field::tensor::external_data;
    write_entry(field, "location", layout_->location);
    write_entry(field, "offset", std::to_string(place.offset));
    write_entry(field, "length", std::to_string(place.length));
    if (find(tensor.external, "checksum")) write_entry(field, "checksum", layout_->checksum);
  }

  void write_sparse(const Tensor& tensor) {
    namespace f = onnx_field::sparse_tensor;
    // Parsers merge this with the values that follow.
    out_.message(f::values, [&] { out_.text(onnx_field::tensor::name, tensor.name); });
    out_.raw(tensor.sparse);
    for (const std::int64_t dim : tensor.dims) out_.integer(f::dims, dim);
  }

  void write(const Function& function) {
    namespace f = onnx_field::function;
    out_.text(f::name, function.name);
    for (const Value* input : function.body->inputs()) out_.text(f::input, input->name());
    for (const Value* output : function.body->outputs()) out_.text(f::output, output->name());
    for (const std::string& attribute : function.attribute_names) out_.text(f::attribute, attribute);
    for (const Node* node : function.body->nodes()) out_.message(f::node, [&] { write(*node); });
    out_.text_unless_empty(f::doc_string, function.doc_string);
    write(f::opset_import, function.opset_imports);
    out_.text(f::domain, function.domain);
    for (const Attribute& attribute : function.attribute_defaults) {
      out_.message(f::attribute_proto, [&] { write(attribute); });
    }
    write_facts(f::value_info, function.body->inputs(), true);
    for (const Node* node : function.body->nodes()) write_facts(f::value_info, node->outputs(), true);
    out_.text_unless_empty(f::overload, function.overload);
    write(f::metadata, function.metadata);
    out_.raw(function.unknown_fields);
  }

  using Places = std::unordered_map<const Tensor*, ExternalLayout::Place>;
  WireWriter& out_;
  const ExternalLayout* layout_;
};

}  // namespace

void write_model(WireWriter& out, const Model& model, const ExternalLayout* layout) {
  MessageWriter(out, layout).write(model);
}

}  // namespace mk
