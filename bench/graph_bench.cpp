// What the graph module costs: reading and writing a graph of 18,000 nodes, and moving the weights of BERT-base.

#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/source_copy.h"
#include "graph/verifier.h"

namespace {

using namespace mk;

std::unique_ptr<Model> long_model(int nodes) {
  auto model = std::make_unique<Model>();
  model->set_opset("", 17);
  Graph& graph = *model->graph;
  graph.name = "long";
  const Type type = Type::tensor(DataType::float32, static_shape({1, 4, 8, 8}));
  Value* value = graph.add_input("x", type);
  for (int i = 0; i < nodes; ++i) {
    Value* scale = i % 15 == 0 ? graph.add_initializer(scalar_tensor("scale" + std::to_string(i), 0.5f)) : nullptr;
    value = scale ? graph.add_op("Mul", {value, scale}, "Mul") : graph.add_op("Relu", {value}, "Relu");
    value->producer()->name = "node_" + std::to_string(i);
    value->type = type;
  }
  graph.mark_output(value);
  return model;
}

void read_model(benchmark::State& state) {
  const std::string bytes = *serialize_onnx(*long_model(18000));
  for (auto _ : state) benchmark::DoNotOptimize(read_onnx(std::as_bytes(std::span(bytes)), {}));
}
BENCHMARK(read_model)->Unit(benchmark::kMillisecond);

void verify_model(benchmark::State& state) {
  const auto model = long_model(18000);
  for (auto _ : state) benchmark::DoNotOptimize(verify(*model));
}
BENCHMARK(verify_model)->Unit(benchmark::kMillisecond);

void write_model(benchmark::State& state) {
  const auto model = long_model(18000);
  for (auto _ : state) benchmark::DoNotOptimize(serialize_onnx(*model));
}
BENCHMARK(write_model)->Unit(benchmark::kMillisecond);

struct Weights {
  Path folder = std::filesystem::temp_directory_path() / "modelkit-bench";
  Path path = folder / "weights";
  Path copy = folder / "copy";
  std::vector<std::pair<std::uint64_t, std::uint64_t>> matrices;  // rows, columns: the linear layers of BERT-base
  Weights() {
    std::filesystem::create_directories(folder);
    std::ofstream file(path, std::ios::binary);
    for (int layer = 0; layer < 12; ++layer) {
      for (int i = 0; i < 4; ++i) matrices.emplace_back(768, 768);
      matrices.emplace_back(3072, 768);
      matrices.emplace_back(768, 3072);
    }
    const std::vector<float> row(768 * 768, 0.5f);
    for (int i = 0; i < 12 * 12; ++i) {
      file.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * sizeof(float)));
    }
  }
  ~Weights() { std::filesystem::remove_all(folder); }
};

void transpose_and_write_bert(benchmark::State& state) {
  const Weights weights;
  const auto source = *File::open(weights.path);
  for (auto _ : state) {
    std::filesystem::remove(weights.copy);
    auto file = *FileWriter::create(weights.copy);
    SourceCopier copier;
    std::uint64_t offset = 0;
    for (const auto& [rows, columns] : weights.matrices) {
      const FileRange range{source, offset, rows * columns * 4};
      benchmark::DoNotOptimize(copier.copy(*transposed(file_bytes(range), 1, rows, columns, 4), file));
      offset += range.length;
    }
    benchmark::DoNotOptimize(file.close());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * source->size()));
}
BENCHMARK(transpose_and_write_bert)->Unit(benchmark::kMillisecond)->Iterations(3);

void cast_to_float16(benchmark::State& state) {
  const std::vector<float> values(1u << 22, 0.1f);
  const Bytes halves = cast(owned_values(values), DataType::float32, DataType::float16);
  std::vector<std::byte> out(halves->size());
  for (auto _ : state) benchmark::DoNotOptimize(halves->read(0, out));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * values.size() * sizeof(float)));
}
BENCHMARK(cast_to_float16)->Unit(benchmark::kMillisecond);

}  // namespace
