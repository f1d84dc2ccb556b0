// Fixtures are made by the gguf package (tests/golden/make_gguf.py), which also says what quantized blocks hold.

#include "checkpoint/gguf.h"

#include <cmath>
#include <cstring>
#include <fstream>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_codes.h"
#include "testing/testing.h"

namespace mk {
namespace {

Path fixture(std::string_view name) { return testing::repository("tests/data/gguf") / name; }

std::vector<float> values_of(const Tensor& tensor) {
  const Bytes data = tensor.type == DataType::float32 ? tensor.data : cast(tensor.data, tensor.type, DataType::float32);
  const auto bytes = read_all(*data);
  EXPECT_TRUE(bytes);
  std::vector<float> values(bytes ? bytes->size() / sizeof(float) : 0);
  if (bytes) std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  return values;
}

TEST(GgufTest, BlocksHoldWhatTheirMakersSay) {
  ASSERT_OK_AND(const GgufFile file, read_gguf(fixture("blocks.gguf")));
  ASSERT_OK_AND(const Checkpoint expected, Checkpoint::open_safetensors(fixture("blocks.safetensors")));
  EXPECT_EQ(file.tensors.size(), expected.tensors().size());
  for (const GgufTensor& stored : file.tensors) {
    const GgufType* type = find_gguf_type(stored.type);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->name, stored.name);
    Bytes data = file_bytes({file.file, stored.offset, stored.bytes});
    if (type->plain == DataType::undefined) data = dequantized(data, *type);
    const DataType element = type->plain == DataType::undefined ? DataType::float32 : type->plain;
    const std::vector<float> got = values_of(make_tensor(stored.name, element, stored.dims, data));
    const std::vector<float> want = values_of(*expected.find(stored.name));
    ASSERT_EQ(got.size(), want.size()) << stored.name;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-6F * (1 + std::abs(want[i]))) << stored.name << " " << i;
  }
}

std::vector<float> floats_of(const Bytes& bytes) {
  return values_of(make_tensor("", DataType::float32, {static_cast<std::int64_t>(bytes->size() / 4)}, bytes));
}

// MatMulNBits says: value = scale * (code - zero point), with 8 or 128 where there is none.
TEST(GgufTest, KeptCodesMeanTheValues) {
  ASSERT_OK_AND(const GgufFile file, read_gguf(fixture("blocks.gguf")));
  ASSERT_OK_AND(const Checkpoint expected, Checkpoint::open_safetensors(fixture("blocks.safetensors")));
  for (const char* name : {"Q4_0", "Q4_1", "Q8_0", "Q4_K"}) {
    const GgufTensor& stored = *file.tensor(name);
    const auto kept = kept_codes(file_bytes({file.file, stored.offset, stored.bytes}), *find_gguf_type(stored.type),
                                 stored.dims[0], stored.dims[1]);
    ASSERT_TRUE(kept) << name;
    ASSERT_OK_AND(const auto codes, read_all(*kept->codes));
    const std::vector<float> scales = floats_of(kept->scales), want = values_of(*expected.find(name));
    const std::vector<float> zeros = kept->zero_points ? floats_of(kept->zero_points) : std::vector<float>();
    ASSERT_EQ(codes.size() * 8, want.size() * static_cast<std::size_t>(kept->bits)) << name;
    ASSERT_EQ(scales.size(), want.size() / 32) << name;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const int byte = std::to_integer<int>(codes[kept->bits == 8 ? i : i / 2]);
      const int code = kept->bits == 8 ? byte : i % 2 == 0 ? byte & 0xF : byte >> 4;
      const float zero = zeros.empty() ? (kept->bits == 8 ? 128.0F : 8.0F) : zeros[i / 32];
      ASSERT_NEAR(scales[i / 32] * (static_cast<float>(code) - zero), want[i], 1e-4F) << name << " " << i;
    }
  }
  for (const char* name : {"F32", "Q5_K", "Q6_K"}) {
    const GgufTensor& stored = *file.tensor(name);
    EXPECT_FALSE(kept_codes(nullptr, *find_gguf_type(stored.type), 3, 512)) << name;
  }
}

TEST(GgufTest, AnyRangeOfAQuantizedTensorCanBeRead) {
  ASSERT_OK_AND(const GgufFile file, read_gguf(fixture("blocks.gguf")));
  const GgufTensor& stored = *file.tensor("Q4_K");
  const Bytes data = dequantized(file_bytes({file.file, stored.offset, stored.bytes}), *find_gguf_type(stored.type));
  ASSERT_OK_AND(const auto all, read_all(*data));
  for (const std::uint64_t offset : {0U, 1U, 1023U, 1024U, 3000U}) {
    std::vector<std::byte> part(1501);
    ASSERT_OK(data->read(offset, part));
    EXPECT_EQ(std::memcmp(part.data(), all.data() + offset, part.size()), 0) << offset;
  }
}

// What llama.cpp's converter did to a checkpoint is undone: tensors are those of the checkpoint.
TEST(GgufTest, AConvertedModelIsTheCheckpoint) {
  for (const auto& [name, folder] :
       {std::pair("llama.gguf", "llama.text-generation.biases"), std::pair("gemma2.gguf", "gemma2.text-generation"),
        std::pair("gpt2.gguf", "gpt2.text-generation")}) {
    ASSERT_OK_AND(const Checkpoint got, Checkpoint::open(fixture(name)));
    ASSERT_OK_AND(const Checkpoint want,
                  Checkpoint::open(testing::repository(std::string("tests/data/decoder_cases/") + folder)));
    for (const auto& [tensor_name, tensor] : want.tensors()) {
      const Tensor* found = got.find(tensor_name);
      ASSERT_NE(found, nullptr) << name << " " << tensor_name;
      EXPECT_EQ(found->dims, tensor.dims) << tensor_name;
      const std::vector<float> a = values_of(*found), b = values_of(tensor);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6) << name << " " << tensor_name;
    }
  }
}

TEST(GgufTest, TheConfigurationIsInTheFile) {
  ASSERT_OK_AND(const ModelConfig config, ModelConfig::read(fixture("llama.gguf")));
  EXPECT_EQ(config.model_type(), "llama");
  EXPECT_EQ(config.architectures(), std::vector<std::string>{"LlamaForCausalLM"});
  EXPECT_EQ(config.integer("hidden_size", 0).value(), 16);
  EXPECT_EQ(config.integer("vocab_size", 0).value(), 40);
  EXPECT_EQ(config.integer("num_key_value_heads", 0).value(), 4);
  EXPECT_EQ(config.integer("bos_token_id", 0).value(), 1);
  EXPECT_EQ(config.number("rms_norm_eps", 0).value(), 1e-6);
  EXPECT_TRUE(config.boolean("tie_word_embeddings", false).value());
  EXPECT_TRUE(config.boolean("attention_bias", false).value());
}

TEST(GgufTest, BrokenFilesAreRefused) {
  std::ifstream in(fixture("blocks.gguf"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  testing::TemporaryFolder folder;
  const auto code_of = [&](const std::string& bytes) {
    const Path path = folder.path() / "x.gguf";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const auto result = read_gguf(path);
    return result ? std::string("read") : std::string(name_of(result.error().code));
  };
  EXPECT_EQ(code_of(whole), "read");
  for (const std::size_t length : {0U, 3U, 8U, 20U, 60U, 400U})
    EXPECT_EQ(code_of(whole.substr(0, length)), "malformed");
  EXPECT_EQ(code_of(whole.substr(0, whole.size() - 64)), "malformed");
  std::string changed = whole;
  changed[0] = 'X';
  EXPECT_EQ(code_of(changed), "malformed");
  changed = whole;
  changed[4] = 1;
  EXPECT_EQ(code_of(changed), "unsupported");
  for (std::size_t at = 8; at < 200; ++at) {  // no byte of the header makes it crash or ask for much memory
    changed = whole;
    changed[at] = static_cast<char>(0xFF);
    code_of(changed);
  }
}

}  // namespace
}  // namespace mk
