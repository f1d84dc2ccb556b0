#include "runtime/external_initializers.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace mk::ort {
namespace {

// Kernels load vectors from the start of a tensor.
constexpr std::uintptr_t alignment = 16;

std::optional<std::span<const std::byte>> usable_bytes(const ByteSource& source) {
  const auto bytes = source.in_memory();
  if (!bytes || reinterpret_cast<std::uintptr_t>(bytes->data()) % alignment != 0) return std::nullopt;
  return bytes;
}

Result<Owner<OrtValue>> borrow(const OrtApi& api, const Tensor& tensor, std::span<const std::byte> bytes) {
  OrtMemoryInfo* memory = nullptr;
  MK_CHECK(check(api, api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory), tensor.name));
  const auto memory_owner = own(memory, api.ReleaseMemoryInfo);
  OrtValue* raw = nullptr;
  MK_CHECK(check(api,
                 api.CreateTensorWithDataAsOrtValue(memory, const_cast<std::byte*>(bytes.data()), bytes.size(),
                                                    tensor.dims.data(), tensor.dims.size(), to_ort(tensor.type), &raw),
                 tensor.name));
  return own(raw, api.ReleaseValue);
}

// The runtime takes no memory of its own allocator here, so what has to be read is read into ours.
struct Buffer {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
};

Result<std::shared_ptr<const Buffer>> read(const ByteSource& source) {
  const auto size = static_cast<std::size_t>(source.size());
  auto buffer = std::make_shared<Buffer>(Buffer{std::make_unique_for_overwrite<std::byte[]>(size), size});
  MK_CHECK(source.read(0, {buffer->bytes.get(), size}));
  return buffer;
}

}  // namespace

Result<std::vector<Owner<OrtValue>>> hand_over(const OrtApi& api, OrtSessionOptions& options,
                                               std::span<const Tensor* const> tensors, bool shared,
                                               std::vector<std::shared_ptr<const void>>& kept) {
  std::vector<Owner<OrtValue>> owners;
  std::vector<const char*> names;
  std::vector<const OrtValue*> values;
  using Key = std::pair<const ByteSource*, std::vector<std::int64_t>>;
  std::map<Key, const OrtValue*> seen;
  for (const Tensor* tensor : tensors) {
    const auto [known, is_new] = seen.try_emplace(Key{tensor->data.get(), tensor->dims}, nullptr);
    if (is_new) {
      auto bytes = usable_bytes(*tensor->data);
      if (bytes) {
        kept.push_back(tensor->data);
      } else {
        MK_TRY(const auto buffer, read(*tensor->data));
        bytes = {buffer->bytes.get(), buffer->size};
        kept.push_back(buffer);
      }
      MK_TRY(auto value, borrow(api, *tensor, *bytes));
      known->second = value.get();
      owners.push_back(std::move(value));
    }
    names.push_back(tensor->name.c_str());
    values.push_back(known->second);
  }
  if (!names.empty())
    MK_CHECK(check(api, api.AddExternalInitializers(&options, names.data(), values.data(), names.size()), {}));
  for (std::size_t i = 0; shared && i < names.size(); ++i)
    MK_CHECK(check(api, api.AddInitializer(&options, names[i], values[i]), names[i]));
  return owners;
}

}  // namespace mk::ort
