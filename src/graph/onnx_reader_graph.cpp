// GraphProto, NodeProto and AttributeProto, into drafts.

#include <array>

#include "graph/onnx_fields.h"
#include "graph/onnx_reader_parts.h"

namespace mk {
namespace {

using Kind = Attribute::Kind;

struct KindRow {
  Kind kind;
  std::string_view name;
};
constexpr std::array kinds{
    KindRow{Kind::real, "FLOAT"},
    KindRow{Kind::integer, "INT"},
    KindRow{Kind::string, "STRING"},
    KindRow{Kind::tensor, "TENSOR"},
    KindRow{Kind::graph, "GRAPH"},
    KindRow{Kind::reals, "FLOATS"},
    KindRow{Kind::integers, "INTS"},
    KindRow{Kind::strings, "STRINGS"},
    KindRow{Kind::tensors, "TENSORS"},
    KindRow{Kind::graphs, "GRAPHS"},
    KindRow{Kind::sparse_tensor, "SPARSE_TENSOR"},
    KindRow{Kind::sparse_tensors, "SPARSE_TENSORS"},
    KindRow{Kind::type, "TYPE_PROTO"},
    KindRow{Kind::types, "TYPE_PROTOS"},
};

std::string name_of(Kind kind) {
  for (const KindRow& row : kinds) {
    if (row.kind == kind) return std::string(row.name);
  }
  return std::to_string(static_cast<std::int32_t>(kind));
}

// The value of a kind whose field is not there: zero, or no elements. What has none of its own stays without.
Attribute::Payload default_payload(Kind kind) {
  switch (kind) {
    case Kind::real:
      return 0.0f;
    case Kind::integer:
      return std::int64_t{0};
    case Kind::string:
      return std::string();
    case Kind::reals:
      return std::vector<float>();
    case Kind::integers:
      return std::vector<std::int64_t>();
    case Kind::strings:
      return std::vector<std::string>();
    case Kind::tensors:
      return std::vector<std::shared_ptr<const Tensor>>();
    case Kind::graphs:
      return std::vector<std::unique_ptr<Graph>>();
    default:
      return std::monostate();
  }
}

bool needs_value(Kind kind) { return kind == Kind::tensor || kind == Kind::graph; }

// Reads one attribute; `seen_` is the kind of the value field that was there.
class AttributeReader {
 public:
  AttributeReader(ReadContext& context, std::string_view owner, std::vector<std::unique_ptr<GraphDraft>>& subgraphs)
      : context_(context), in_(context.in), owner_(owner), subgraphs_(subgraphs) {}

  Attribute read(const WireField& field) {
    in_.message(field, [&](const WireField& part) { read_part(part); });
    if (!in_.failed()) finish();
    return std::move(result_);
  }

 private:
  void read_part(const WireField& part) {
    namespace f = onnx_field::attribute;
    switch (part.number) {
      case f::name:
        result_.name = in_.text(part);
        return;
      case f::doc_string:
        result_.doc_string = in_.text(part);
        return;
      case f::ref_attr_name:
        result_.reference = in_.text(part);
        return;
      case f::type:
        result_.kind = static_cast<Kind>(in_.varint(part));
        return;
      case f::f:
        return one<float>(Kind::real, in_.real(part));
      case f::i:
        return one<std::int64_t>(Kind::integer, in_.integer(part));
      case f::s:
        return one<std::string>(Kind::string, in_.text(part));
      case f::t:
        return one<std::shared_ptr<const Tensor>>(Kind::tensor, tensor(part));
      case f::g:
        return graph(part);
      case f::floats:
        return reals(part);
      case f::ints:
        if (auto* values = many<std::int64_t>(Kind::integers)) {
          in_.varints(part, [&](std::uint64_t value) { values->push_back(static_cast<std::int64_t>(value)); });
        }
        return;
      case f::strings:
        if (auto* values = many<std::string>(Kind::strings)) values->push_back(in_.text(part));
        return;
      case f::tensors:
        if (auto* values = many<std::shared_ptr<const Tensor>>(Kind::tensors)) values->push_back(tensor(part));
        return;
      case f::graphs:
        if (auto* values = many<std::unique_ptr<Graph>>(Kind::graphs)) values->push_back(subgraph(part));
        return;
      case f::sparse_tensor:
        return kept(Kind::sparse_tensor, part);
      case f::sparse_tensors:
        return kept(Kind::sparse_tensors, part);
      case f::tp:
        return kept(Kind::type, part);
      case f::type_protos:
        return kept(Kind::types, part);
      default:
        return in_.keep(part, result_.raw);
    }
  }

  std::string where() const { return "attribute " + result_.name + " of " + std::string(owner_); }

  bool see(Kind kind) {
    if (seen_ != Kind::undefined && seen_ != kind) {
      in_.set_error("both a " + name_of(seen_) + " and a " + name_of(kind), where());
      return false;
    }
    seen_ = kind;
    return true;
  }

  template <typename T>
  void one(Kind kind, T value) {
    if (see(kind)) result_.value = std::move(value);
  }

  template <typename T>
  std::vector<T>* many(Kind kind) {
    if (!see(kind)) return nullptr;
    if (!std::holds_alternative<std::vector<T>>(result_.value)) result_.value = std::vector<T>();
    return &std::get<std::vector<T>>(result_.value);
  }

  void kept(Kind kind, const WireField& part) {
    if (see(kind)) in_.keep(part, result_.raw);
  }

  void reals(const WireField& part) {
    auto* values = many<float>(Kind::reals);
    if (!values) return;
    const Bytes bytes = in_.fixed(part, 4, in_.size() + 1);
    if (in_.failed()) return;
    const std::size_t before = values->size();
    values->resize(before + static_cast<std::size_t>(bytes->size() / 4));
    // In memory already: it cannot fail.
    static_cast<void>(bytes->read(0, std::as_writable_bytes(std::span(*values).subspan(before))));
  }

  std::shared_ptr<const Tensor> tensor(const WireField& part) {
    return std::make_shared<const Tensor>(read_tensor(context_, part, where()));
  }

  std::unique_ptr<Graph> subgraph(const WireField& part) {
    subgraphs_.push_back(std::make_unique<GraphDraft>());
    GraphDraft* draft = subgraphs_.back().get();
    read_graph(context_, part, *draft);
    return std::make_unique<Graph>();
  }

  void graph(const WireField& part) {
    if (seen_ == Kind::graph) return in_.set_error("two graphs", where());
    if (see(Kind::graph)) result_.value = subgraph(part);
  }

  void finish() {
    const auto number = static_cast<std::int32_t>(result_.kind);
    if (result_.name.empty()) return in_.set_error("an attribute without a name", std::string(owner_));
    if (number < 0 || number > static_cast<std::int32_t>(Kind::types)) {
      return in_.set_error("unknown attribute type " + std::to_string(number), where());
    }
    if (result_.kind == Kind::undefined) result_.kind = seen_;  // type is optional in old files
    if (seen_ != Kind::undefined && seen_ != result_.kind) {
      return in_.set_error("the type is " + name_of(result_.kind) + " but the value a " + name_of(seen_), where());
    }
    if (!result_.reference.empty()) {
      if (seen_ != Kind::undefined) in_.set_error("both a value and a reference", where());
      return;
    }
    if (seen_ != Kind::undefined) return;
    if (needs_value(result_.kind)) return in_.set_error("a " + name_of(result_.kind) + " without a value", where());
    result_.value = default_payload(result_.kind);
  }

  ReadContext& context_;
  WireReader& in_;
  std::string_view owner_;
  std::vector<std::unique_ptr<GraphDraft>>& subgraphs_;
  Attribute result_;
  Kind seen_ = Kind::undefined;
};

}  // namespace

Attribute read_attribute(ReadContext& context, const WireField& field, std::string_view owner,
                         std::vector<std::unique_ptr<GraphDraft>>& subgraphs) {
  return AttributeReader(context, owner, subgraphs).read(field);
}

NodeDraft read_node(ReadContext& context, const WireField& field) {
  namespace f = onnx_field::node;
  WireReader& in = context.in;
  NodeDraft node;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::input:
        return node.inputs.push_back(in.text(part));
      case f::output:
        return node.outputs.push_back(in.text(part));
      case f::name:
        node.name = in.text(part);
        return;
      case f::op_type:
        node.op_type = in.text(part);
        return;
      case f::attribute: {
        const std::string owner = "node " + (node.name.empty() ? node.op_type : node.name);
        return node.attributes.push_back(read_attribute(context, part, owner, node.subgraphs));
      }
      case f::doc_string:
        node.doc_string = in.text(part);
        return;
      case f::domain:
        node.domain = in.text(part);
        return;
      case f::overload:
        node.overload = in.text(part);
        return;
      case f::metadata:
        return read_entry(in, part, node.metadata);
      default:
        return in.keep(part, node.unknown_fields);
    }
  });
  return node;
}

void read_graph(ReadContext& context, const WireField& field, GraphDraft& into) {
  namespace f = onnx_field::graph;
  WireReader& in = context.in;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::node:
        return into.nodes.push_back(read_node(context, part));
      case f::name:
        into.name = in.text(part);
        return;
      case f::initializer:
        return into.initializers.push_back(read_tensor(context, part, {}));
      case f::sparse_initializer:
        return into.initializers.push_back(read_sparse_tensor(context, part));
      case f::doc_string:
        into.doc_string = in.text(part);
        return;
      case f::input:
        return into.inputs.push_back(read_value(in, part));
      case f::output:
        return into.outputs.push_back(read_value(in, part));
      case f::value_info:
        return into.values.push_back(read_value(in, part));
      case f::metadata:
        return read_entry(in, part, into.metadata);
      default:
        return in.keep(part, into.unknown_fields);
    }
  });
}

}  // namespace mk
