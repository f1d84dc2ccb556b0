// The unpickler and the state dict made of it: any stream gives tensors or an error, and the tensors' bytes lie within
// their storages.

#include <cstdlib>
#include <string>

#include "checkpoint/pickle.h"
#include "checkpoint/pytorch.h"

namespace {

// Reading a tensor's bytes needs a file; of these only the sizes count.
constexpr std::uint64_t storage_bytes = 24;

mk::Result<mk::FileRange> storage(std::string_view key) {
  if (key.size() > 4) return mk::fail(mk::ErrorCode::malformed, "no such storage");
  return mk::FileRange{nullptr, 1000, storage_bytes};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string stream(reinterpret_cast<const char*>(data), size);
  const auto pickle = mk::Pickle::read(std::move(stream), mk::allowed_in_weights, "fuzz");
  if (!pickle) return 0;
  const auto tensors = mk::state_dict_tensors(*pickle, storage, "fuzz");
  if (!tensors) return 0;
  for (const auto& [name, tensor] : *tensors) {
    if (tensor.data->size() != tensor.byte_count()) std::abort();
    const auto range = tensor.data->file_range();
    if (range && (range->offset < 1000 || range->offset + range->length > 1000 + storage_bytes)) std::abort();
  }
  return 0;
}
