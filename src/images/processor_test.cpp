// Against the tensors that transformers' processors make: tests/data/processors (make_processors.py, make_more.py).

#include "images/processor.h"

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "images/decode.h"
#include "testing/testing.h"

namespace mk {
namespace {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// pixel_values (F32) of a safetensors file.
Tensor read_pixel_values(const Path& path) {
  const std::string bytes = *read_text(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const Json header = *parse_json(std::string_view(bytes).substr(8, length), "header");
  const Json& entry = header["pixel_values"];
  Tensor tensor{entry["shape"].get<std::vector<std::int64_t>>(), {}};
  const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  tensor.values.resize((end - begin) / sizeof(float));
  std::memcpy(tensor.values.data(), bytes.data() + 8 + length + begin, end - begin);
  return tensor;
}

// What 2/255 of the scale becomes after normalising; decoders of these may differ by that much.
bool lossy(const std::string& image_file) { return image_file.ends_with(".jpg") || image_file.ends_with(".webp"); }

void run_case(const Path& folder) {
  ASSERT_OK_AND(const Json about, read_json(folder / "case.json"));
  const std::string image_file = about["input"];
  ASSERT_OK_AND(const Json json, read_json(folder / "preprocessor_config.json"));
  ASSERT_OK_AND(const ImageProcessor processor,
                ImageProcessor::parse(JsonView(json, "preprocessor_config.json"), about.value("model_type", "")));
  ASSERT_OK_AND(const Image image, read_image(testing::repository("tests/data/processors") / image_file));
  const Tensor expected = read_pixel_values(folder / "outputs.safetensors");

  const auto size = processor.output_size({image.height, image.width});
  const auto every = about.value("every", 1);
  const auto width = static_cast<std::size_t>(size.width), height = static_cast<std::size_t>(size.height);
  std::vector<float> values(3 * height * width);
  ASSERT_OK(processor.process(image, values));
  ASSERT_EQ(expected.shape, (std::vector<std::int64_t>{1, 3, size.height / every, size.width / every}));

  double largest = 0;
  std::size_t i = 0;
  const auto step = static_cast<std::size_t>(every);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t y = 0; y < height; y += step)
      for (std::size_t x = 0; x < width; x += step)
        largest = std::max(largest, std::abs(double{values[(c * height + y) * width + x]} - expected.values[i++]));
  EXPECT_LE(largest, lossy(image_file) ? 2.0 / 255 / 0.25 : 1e-6);
}

TEST(Processor, GivesWhatTransformersGives) {
  ASSERT_OK_AND(const auto folders, list_folder(testing::repository("tests/data/processors/cases")));
  ASSERT_GE(folders.size(), 50U);
  for (const Path& folder : folders) {
    SCOPED_TRACE(to_utf8(folder.filename()));
    run_case(testing::repository("tests/data/processors/cases") / folder.filename());
  }
}

Error error_of(std::string_view text, std::string_view model_type = {}) {
  const Json json = *parse_json(text, "preprocessor_config.json");
  const auto outcome = ImageProcessor::parse(JsonView(json, "preprocessor_config.json"), model_type);
  return outcome ? Error{ErrorCode::failed, "it was accepted", {}, {}} : outcome.error();
}

TEST(Processor, NamesWhatItDoesNotKnow) {
  const Error unknown = error_of(R"({"image_processor_type": "MagicImageProcessor"})");
  EXPECT_EQ(unknown.code, ErrorCode::unsupported);
  EXPECT_NE(unknown.message.find("MagicImageProcessor"), std::string::npos);
  EXPECT_NE(unknown.hint.find("ViTImageProcessor"), std::string::npos);
  EXPECT_EQ(error_of("{}", "bert").code, ErrorCode::malformed);
}

TEST(Processor, RefusesWrongFields) {
  for (const char* text : {R"({"size": {"height": 0, "width": 5}})", R"({"size": {"height": 5}})", R"({"size": "big"})",
                           R"({"resample": 6})", R"({"image_std": [0, 1, 1]})", R"({"image_mean": [1, 2]})",
                           R"({"do_resize": "yes"})", R"({"size": 1e9})", R"({"rescale_factor": "1/255"})", R"([])"})
    EXPECT_EQ(error_of(text, "vit").code, ErrorCode::malformed) << text;
  EXPECT_EQ(error_of(R"({"size": 60, "crop_pct": 0})", "convnext").code, ErrorCode::malformed);
  EXPECT_EQ(error_of(R"({"size": {"height": 9, "width": 9}})", "convnext").code, ErrorCode::malformed);
  EXPECT_EQ(error_of(R"({"size": 300, "crop_pct": 1e-9})", "convnext").code, ErrorCode::malformed);
}

// One reader for export and for the processors themselves.
TEST(Processor, SizeOfAFolder) {
  const testing::TemporaryFolder folder;
  const auto size = [&](std::string_view text, std::string_view type) {
    folder.write("preprocessor_config.json", text);
    folder.write("config.json", R"({"model_type": ")" + std::string(type) + "\"}");
    return preprocessed_size(folder.path());
  };
  EXPECT_EQ(*size(R"({"size": [48, 32]})", "vit"), (ImageSize{48, 32}));
  EXPECT_EQ(*size(R"({"size": 40})", "vit"), (ImageSize{40, 40}));
  EXPECT_EQ(*size(R"({"size": {"height": 256, "width": 256}})", "deit"), (ImageSize{224, 224}));  // the class's crop
  EXPECT_EQ(*size(R"({"size": {"shortest_edge": 224}, "crop_pct": 0.875})", "convnext"), (ImageSize{224, 224}));
  EXPECT_EQ(*size(R"({"size": {"shortest_edge": 30}, "do_center_crop": false})", "bit"), (ImageSize{30, 30}));
  EXPECT_EQ(*size(R"({"size": [10, 20]})", "novel"), (ImageSize{10, 20}));
  EXPECT_EQ(*size(R"({"size": 60, "crop_size": {"height": 50, "width": 40}})", "novel"), (ImageSize{50, 40}));
  EXPECT_EQ(*size("{}", "novel"), std::nullopt);
  EXPECT_EQ(size(R"({"size": "big"})", "novel").error().code, ErrorCode::malformed);
  const testing::TemporaryFolder empty;
  EXPECT_EQ(*preprocessed_size(empty.path()), std::nullopt);
}

TEST(Processor, KnowsItsOutputSize) {
  const Json json = *parse_json(R"({"size": {"shortest_edge": 20}, "do_center_crop": false})", "p");
  ASSERT_OK_AND(const ImageProcessor processor, ImageProcessor::parse(JsonView(json, "p"), "bit"));
  EXPECT_FALSE(processor.fixed_size().has_value());
  EXPECT_EQ(processor.output_size({100, 50}), (ImageSize{40, 20}));
  std::vector<float> small(10);
  EXPECT_FALSE(processor.process(Image(50, 100), small).has_value());
}

}  // namespace
}  // namespace mk
