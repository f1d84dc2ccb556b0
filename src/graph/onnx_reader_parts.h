#pragma once
// What the parts of the ONNX reader share. Messages are first read into drafts, whose nodes name their inputs; a draft
// becomes a graph when all its names are known.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/external_files.h"
#include "graph/ir.h"
#include "graph/onnx_reader.h"
#include "graph/wire_reader.h"

namespace mk {

struct ValueDraft {  // ValueInfoProto
  std::string name;
  Type type;
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;
};

struct GraphDraft;

struct NodeDraft {
  std::string name;
  std::string op_type;
  std::string domain;
  std::string overload;
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
  // Of the graphs in the attributes, in their order; the graphs themselves are still empty.
  std::vector<std::unique_ptr<GraphDraft>> subgraphs;
};

struct GraphDraft {
  std::string name;
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;
  std::vector<NodeDraft> nodes;
  std::vector<Tensor> initializers;  // sparse ones too
  std::vector<ValueDraft> inputs;
  std::vector<ValueDraft> outputs;
  std::vector<ValueDraft> values;  // value_info
};

class ReadContext {
 public:
  ReadContext(WireReader& reader, Path folder, std::string file_name, const ReadOptions& read_options)
      : in(reader), external(std::move(folder)), file(std::move(file_name)), options(read_options) {}

  WireReader& in;
  ExternalFiles external;
  std::string file;  // for messages
  const ReadOptions& options;

  // Each `kind` of warning is given a few times and then counted.
  void warn(std::string_view kind, const std::string& message);
  void finish_warnings();

 private:
  std::vector<std::pair<std::string, std::uint64_t>> warned_;
};

// One field each; errors stay in the WireReader.
void read_entry(WireReader& in, const WireField& field, Metadata& into);
void read_opset(WireReader& in, const WireField& field, std::vector<std::pair<std::string, std::int64_t>>& into);
Type read_type(WireReader& in, const WireField& field);
ValueDraft read_value(WireReader& in, const WireField& field);
Tensor read_tensor(ReadContext& context, const WireField& field, std::string_view owner);
Tensor read_sparse_tensor(ReadContext& context, const WireField& field);
// The graph of a graph attribute goes to `subgraphs`.
Attribute read_attribute(ReadContext& context, const WireField& field, std::string_view owner,
                         std::vector<std::unique_ptr<GraphDraft>>& subgraphs);
NodeDraft read_node(ReadContext& context, const WireField& field);
void read_graph(ReadContext& context, const WireField& field, GraphDraft& into);

// Makes the values and nodes of `draft` in the empty `graph`, sub-graphs included.
Status build_graph(ReadContext& context, GraphDraft draft, Graph& graph);

}  // namespace mk
