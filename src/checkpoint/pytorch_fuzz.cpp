// A whole pytorch_model.bin: any bytes give a checkpoint whose tensors can be read, or an error.

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "checkpoint/pytorch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const mk::Path path =
      std::filesystem::temp_directory_path() / ("modelkit-fuzz-" + std::to_string(std::random_device()()));
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  auto file = mk::File::open(path);
  if (!file) return 0;
  const auto tensors = mk::read_pytorch(*file);
  if (!tensors) return 0;
  for (const auto& [name, tensor] : *tensors) {
    if (tensor.byte_count() > (1u << 20)) continue;
    const auto bytes = mk::read_all(*tensor.data);
    if (bytes && bytes->size() != tensor.byte_count()) std::abort();
  }
  return 0;
}
