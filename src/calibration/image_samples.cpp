// Images through the model's preprocessor.

#include <fmt/format.h>

#include <algorithm>

#include "calibration/sources.h"
#include "images/decode.h"
#include "images/processor.h"

namespace mk {
namespace {

class ImageSamples final : public SampleSource {
 public:
  ImageSamples(std::vector<EncodedImage> images, std::string description, ImageProcessor processor, Port input)
      : images_(std::move(images)),
        description_(std::move(description)),
        processor_(std::move(processor)),
        input_(std::move(input)),
        batch_(static_cast<std::size_t>(fixed_batch({&input_, 1}))) {}

  std::size_t size() const override { return (images_.size() + batch_ - 1) / batch_; }

  Result<std::vector<HostTensor>> sample(std::size_t number) const override {
    std::vector<float> values;
    ImageSize size;
    // The last batch is filled up from the beginning.
    for (std::size_t i = 0; i < batch_; ++i) {
      const EncodedImage& encoded = images_[(number * batch_ + i) % images_.size()];
      MK_TRY(const Image image, decode_image(encoded.bytes, encoded.where));
      const ImageSize made = processor_.output_size({image.height, image.width});
      if (i == 0) size = made;
      if (made != size) return fail(ErrorCode::usage, "images of other sizes cannot be one batch", encoded.where);
      MK_CHECK(check_size(made, encoded.where));
      const std::size_t count = 3 * static_cast<std::size_t>(made.height) * static_cast<std::size_t>(made.width);
      values.resize(values.size() + count);
      MK_CHECK(processor_.process(image, std::span(values).last(count)));
    }
    MK_TRY(auto tensor, converted(host_tensor<float>(input_.name, DataType::float32,
                                                     {static_cast<std::int64_t>(batch_), 3, size.height, size.width},
                                                     std::span<const float>(values)),
                                  input_.type.element));
    std::vector<HostTensor> tensors;
    tensors.push_back(std::move(tensor));
    return tensors;
  }

  std::string description() const override { return description_; }

 private:
  Status check_size(ImageSize made, const std::string& where) const {
    const Shape& shape = *input_.type.shape;
    const bool fits = (!shape[2].is_known() || shape[2].value == made.height) &&
                      (!shape[3].is_known() || shape[3].value == made.width);
    if (fits) return {};
    return fail(ErrorCode::usage,
                fmt::format("the model takes images of {} x {}, the preprocessor makes {} x {}", to_string(shape[2]),
                            to_string(shape[3]), made.height, made.width),
                where, "Is preprocessor_config.json another model's?");
  }

  std::vector<EncodedImage> images_;
  std::string description_;
  ImageProcessor processor_;
  Port input_;
  std::size_t batch_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> image_samples(std::vector<EncodedImage> images, std::string description,
                                                    const CalibrationData& data, std::span<const Port> inputs) {
  const bool fits = inputs.size() == 1 && inputs[0].type.is_tensor() && is_float(inputs[0].type.element) &&
                    inputs[0].type.shape && inputs[0].type.shape->size() == 4 &&
                    (!(*inputs[0].type.shape)[1].is_known() || (*inputs[0].type.shape)[1].value == 3);
  if (!fits) {
    std::string taken;
    for (const Port& port : inputs)
      taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", port.name, to_string(port.type));
    return fail(ErrorCode::usage, "images are no samples of this model's inputs: " + taken, to_utf8(data.path),
                "Images fit one input [batch, 3, height, width]; give others as an .npz file");
  }
  auto processor = ImageProcessor::load(data.assets);
  if (!processor && processor.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "there is no preprocessor_config.json beside the model", to_utf8(data.assets),
                "Name the folder or id that has it with --model-id");
  if (!processor) return tl::make_unexpected(std::move(processor).error());
  return std::make_unique<ImageSamples>(std::move(images), std::move(description), std::move(*processor), inputs[0]);
}

}  // namespace mk
