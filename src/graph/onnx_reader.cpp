// ModelProto and FunctionProto, and the way in.

#include "graph/onnx_reader.h"

#include <algorithm>
#include <array>

#include "graph/onnx_fields.h"
#include "graph/onnx_reader_parts.h"

namespace mk {

void ReadContext::warn(std::string_view kind, const std::string& message) {
  constexpr std::uint64_t shown = 3;
  if (!options.progress) return;
  auto row = std::find_if(warned_.begin(), warned_.end(), [&](const auto& r) { return r.first == kind; });
  if (row == warned_.end()) row = warned_.insert(row, {std::string(kind), 0});
  if (++row->second <= shown) options.progress->warn(file + ": " + message);
}

void ReadContext::finish_warnings() {
  constexpr std::uint64_t shown = 3;
  for (const auto& [kind, count] : warned_) {
    if (count > shown) {
      options.progress->warn(file + ": " + std::to_string(count - shown) + " more of these (" + kind + ")");
    }
  }
}

void read_entry(WireReader& in, const WireField& field, Metadata& into) {
  namespace f = onnx_field::entry;
  auto& entry = into.emplace_back();
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::key:
        entry.first = in.text(part);
        return;
      case f::value:
        entry.second = in.text(part);
        return;
      default:
        return in.drop(part, "a metadata entry");
    }
  });
}

void read_opset(WireReader& in, const WireField& field, std::vector<std::pair<std::string, std::int64_t>>& into) {
  namespace f = onnx_field::opset;
  auto& opset = into.emplace_back();
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::domain:
        opset.first = in.text(part);
        return;
      case f::version:
        opset.second = in.integer(part);
        return;
      default:
        return in.drop(part, "an opset import");
    }
  });
}

namespace {

constexpr std::int64_t oldest_ir = 3;
constexpr std::int64_t newest_ir = 14;

struct FunctionDraft {
  Function function;
  GraphDraft body;
  std::vector<std::unique_ptr<GraphDraft>> default_graphs;
};

FunctionDraft read_function(ReadContext& context, const WireField& field) {
  namespace f = onnx_field::function;
  WireReader& in = context.in;
  FunctionDraft draft;
  Function& function = draft.function;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::name:
        function.name = in.text(part);
        return;
      case f::input:
        draft.body.inputs.emplace_back().name = in.text(part);
        return;
      case f::output:
        draft.body.outputs.emplace_back().name = in.text(part);
        return;
      case f::attribute:
        return function.attribute_names.push_back(in.text(part));
      case f::attribute_proto:
        return function.attribute_defaults.push_back(
            read_attribute(context, part, "function " + function.name, draft.default_graphs));
      case f::node:
        return draft.body.nodes.push_back(read_node(context, part));
      case f::doc_string:
        function.doc_string = in.text(part);
        return;
      case f::opset_import:
        return read_opset(in, part, function.opset_imports);
      case f::domain:
        function.domain = in.text(part);
        return;
      case f::value_info:
        return draft.body.values.push_back(read_value(in, part));
      case f::overload:
        function.overload = in.text(part);
        return;
      case f::metadata:
        return read_entry(in, part, function.metadata);
      default:
        return in.keep(part, function.unknown_fields);
    }
  });
  draft.body.name = function.name;
  return draft;
}

struct ModelDraft {
  std::unique_ptr<Model> model = std::make_unique<Model>();
  GraphDraft graph;
  bool has_graph = false;
  std::vector<FunctionDraft> functions;
};

void read_fields(ReadContext& context, ModelDraft& draft) {
  namespace f = onnx_field::model;
  WireReader& in = context.in;
  Model& model = *draft.model;
  model.ir_version = 0;
  in.fields([&](const WireField& part) {
    switch (part.number) {
      case f::ir_version:
        model.ir_version = in.integer(part);
        return;
      case f::producer_name:
        model.producer_name = in.text(part);
        return;
      case f::producer_version:
        model.producer_version = in.text(part);
        return;
      case f::domain:
        model.domain = in.text(part);
        return;
      case f::model_version:
        model.model_version = in.integer(part);
        return;
      case f::doc_string:
        model.doc_string = in.text(part);
        return;
      case f::graph:
        draft.has_graph = true;
        return read_graph(context, part, draft.graph);
      case f::opset_import:
        return read_opset(in, part, model.opset_imports);
      case f::metadata:
        return read_entry(in, part, model.metadata);
      case f::functions:
        return draft.functions.push_back(read_function(context, part));
      default:
        return in.keep(part, model.unknown_fields);
    }
  });
}

Status check_version(ReadContext& context, const ModelDraft& draft) {
  const std::int64_t version = draft.model->ir_version;
  if (version == 0 || !draft.has_graph) {
    return fail(ErrorCode::malformed, version == 0 ? "no IR version" : "no graph", context.file,
                "Is it an ONNX model, and complete?");
  }
  if (version < oldest_ir) {
    return fail(ErrorCode::unsupported, "IR version " + std::to_string(version) + " is too old", context.file,
                "Convert it with an ONNX release of 2018 or later");
  }
  if (version > newest_ir) {
    context.warn("version", "IR version " + std::to_string(version) + " is newer than " + std::to_string(newest_ir) +
                                ", the newest we know");
  }
  return {};
}

// Of a function's defaults: they stand on their own, so that their names are theirs or nobody's.
Status build_default_graphs(ReadContext& context, FunctionDraft& draft) {
  auto next = draft.default_graphs.begin();
  for (Attribute& attribute : draft.function.attribute_defaults) {
    if (auto* graph = std::get_if<std::unique_ptr<Graph>>(&attribute.value))
      MK_CHECK(build_graph(context, std::move(**next++), **graph));
    if (auto* graphs = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
      for (const auto& graph : *graphs) MK_CHECK(build_graph(context, std::move(**next++), *graph));
  }
  return {};
}

Result<std::unique_ptr<Model>> read_model(ReadContext& context) {
  ModelDraft draft;
  read_fields(context, draft);
  MK_CHECK(context.in.status());
  MK_CHECK(check_version(context, draft));
  MK_CHECK(build_graph(context, std::move(draft.graph), *draft.model->graph));
  for (FunctionDraft& function : draft.functions) {
    function.function.body = std::make_unique<Graph>();
    MK_CHECK(build_graph(context, std::move(function.body), *function.function.body));
    MK_CHECK(build_default_graphs(context, function));
    draft.model->functions.push_back(std::move(function.function));
  }
  draft.model->external_locations = std::move(context.external.locations);
  for (const auto& [field, count] : context.in.dropped())
    context.warn("unknown field", field + " is not known and is left out, " + std::to_string(count) + " times");
  context.finish_warnings();
  return std::move(draft.model);
}

// What else people hand us under the name of a model, by the bytes it begins with.
struct OtherKind {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  std::string_view hint;
};
constexpr std::array other_kinds{
    OtherKind{0, "version https://git-lfs", "a Git LFS pointer, not the model itself", "Run git lfs pull"},
    OtherKind{4, "ORTM", "a model in ONNX Runtime's own format", "Use the .onnx file it was made from"},
    OtherKind{0, "PK\x03\x04", "a zip archive, not an ONNX model", "Unpack it first"},
    OtherKind{0, "<!DOCTYPE", "a web page, not an ONNX model", "Download the file itself"},
    OtherKind{0, "GGUF", "a GGUF checkpoint, not an ONNX model", ""},
};

Status check_kind(const File& file) {
  std::array<char, 32> head{};
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file.size()));
  MK_CHECK(file.read(0, std::as_writable_bytes(std::span(head).first(length))));
  const std::string_view text(head.data(), length);
  if (text.empty()) return fail(ErrorCode::malformed, "the file is empty", to_utf8(file.path()));
  for (const OtherKind& kind : other_kinds) {
    if (text.size() >= kind.offset && text.substr(kind.offset).starts_with(kind.bytes)) {
      return fail(ErrorCode::unsupported, std::string(kind.what), to_utf8(file.path()), std::string(kind.hint));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> read_onnx(const Path& path, const ReadOptions& options) {
  MK_TRY(const std::shared_ptr<const File> file, File::open(path));
  WireReader reader(file);
  ReadContext context(reader, path.parent_path(), to_utf8(path), options);
  auto model = read_model(context);
  if (!model && model.error().code == ErrorCode::malformed) MK_CHECK(check_kind(*file));
  return model;
}

Result<std::unique_ptr<Model>> read_onnx(std::span<const std::byte> bytes, const Path& folder,
                                         const ReadOptions& options) {
  WireReader reader(bytes);
  ReadContext context(reader, folder, "model in memory", options);
  return read_model(context);
}

}  // namespace mk
