#include "graph/onnx_writer.h"

#include "base/sha1.h"
#include "graph/external_layout.h"
#include "graph/onnx_writer_messages.h"
#include "graph/source_copy.h"
#include "graph/wire_writer.h"

namespace mk {
namespace {

// Past this protobuf, and so every other reader of ONNX, gives up.
constexpr std::uint64_t protobuf_limit = (2ull << 30) - 1;

Status write_data_file(const ExternalLayout& layout, FileWriter& file) {
  SourceCopier copier;
  for (const auto& [place, source] : layout.blocks) {
    MK_CHECK(file.pad_to(ExternalLayout::alignment_of(place.length)));
    MK_CHECK(copier.copy(*source, file));
  }
  return file.close();
}

// A tensor whose data is missing keeps its reference, which must not lead to the file we are about to write.
Status check_kept_references(const Graph& graph, const std::string& location) {
  for (const Value* value : graph.initializers()) {
    const Tensor& tensor = *value->initializer();
    const std::string* old = tensor.data ? nullptr : find(tensor.external, "location");
    if (old && *old == location) {
      return fail(ErrorCode::failed, "the data of tensor " + value->name() + " is missing from " + location, {},
                  "Write to another folder or name, or bring the data file back first");
    }
  }
  for (const Node* node : graph.nodes()) {
    if (node->attributes().empty()) continue;
    for (const Graph* inner : node->subgraphs()) MK_CHECK(check_kept_references(*inner, location));
  }
  return {};
}

Error at(Error error, const Path& path) {
  if (error.where.empty()) error.where = to_utf8(path);
  return error;
}

Status check_size(std::uint64_t bytes, bool external) {
  if (bytes <= protobuf_limit) return {};
  return fail(ErrorCode::failed,
              "the model file would have " + std::to_string(bytes) + " bytes, past the 2 GiB of ONNX", {},
              external ? "Move its large constants to initializers" : "Let its data go to an external file");
}

Result<std::string> serialize(const Model& model, const ExternalLayout* layout) {
  WireWriter out;
  write_model(out, model, layout);
  MK_CHECK(out.status());
  MK_CHECK(check_size(out.measured(), layout != nullptr));
  std::string bytes;
  out.start(bytes);
  write_model(out, model, layout);
  MK_CHECK(out.finish());
  return bytes;
}

}  // namespace

Result<WrittenModel> write_onnx(const Model& model, const Path& path, Publication& publication, bool overwrite,
                                const WriteOptions& options) {
  const auto write = [&]() -> Result<WrittenModel> {
    WrittenModel written;
    written.files.push_back(path);
    WireWriter out;
    write_model(out, model, nullptr);
    MK_CHECK(out.status());

    const bool large = out.measured() >= options.external_threshold || !model.external_locations.empty();
    const bool external =
        options.external == ExternalData::always || (options.external == ExternalData::automatic && large);
    const Path data_path = with_suffix(path, ".data");
    ExternalLayout layout;
    if (external) layout = lay_out(model, to_utf8(data_path.filename()), options.inline_below);
    const ExternalLayout* used = layout.blocks.empty() ? nullptr : &layout;
    if (used) {
      MK_CHECK(check_kept_references(*model.graph, layout.location));
      MK_TRY(FileWriter data, publication.add(data_path, overwrite));
      MK_CHECK(write_data_file(layout, data));
      if (layout.wants_checksum) {
        MK_TRY(const auto file, File::open(publication.staged(data_path)));
        MK_TRY(layout.checksum, sha1_hex(*file));
      }
      written.files.push_back(data_path);
      written.bytes += layout.bytes;
      out = WireWriter();
      write_model(out, model, used);
    }
    MK_CHECK(check_size(out.measured(), external));
    MK_TRY(FileWriter file, publication.add(path, overwrite));
    out.start(file);
    write_model(out, model, used);
    MK_CHECK(out.finish());
    MK_CHECK(file.close());
    written.bytes += out.measured();
    return written;
  };
  auto result = write();
  if (!result) return tl::make_unexpected(at(std::move(result).error(), path));
  return result;
}

Result<std::string> serialize_onnx(const Model& model) { return serialize(model, nullptr); }

Result<SkeletonModel> serialize_skeleton(const Model& model, std::uint64_t inline_below) {
  ExternalLayout layout;
  layout.location = "in-memory";
  SkeletonModel skeleton;
  for (const Value* value : model.graph->initializers()) {
    const Tensor& tensor = *value->initializer();
    if (!tensor.data || tensor.data->size() < inline_below || tensor.data->size() != tensor.byte_count()) continue;
    layout.places.emplace(&tensor, ExternalLayout::Place{0, tensor.data->size()});
    skeleton.beside.push_back(&tensor);
  }
  MK_TRY(skeleton.bytes, serialize(model, &layout));
  return skeleton;
}

}  // namespace mk
