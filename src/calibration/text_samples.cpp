// Texts through the model's tokenizer.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibration/sources.h"
#include "tokenizers/tokenizer.h"

namespace mk {
namespace {

constexpr std::int64_t free_length = 128;

struct TextInput {
  std::string_view name;
  std::vector<std::int64_t> Encoding::*values;
};
constexpr std::array<TextInput, 3> text_inputs{{{"input_ids", &Encoding::input_ids},
                                                {"attention_mask", &Encoding::attention_mask},
                                                {"token_type_ids", &Encoding::token_type_ids}}};

const TextInput* text_input(std::string_view name) {
  const auto* found = std::ranges::find(text_inputs, name, &TextInput::name);
  return found == text_inputs.end() ? nullptr : found;
}

class TextSamples final : public SampleSource {
 public:
  TextSamples(std::vector<std::string> texts, std::string description, Tokenizer tokenizer, std::vector<Port> inputs)
      : texts_(std::move(texts)),
        description_(std::move(description)),
        tokenizer_(std::move(tokenizer)),
        inputs_(std::move(inputs)),
        batch_(static_cast<std::size_t>(fixed_batch(inputs_))) {}

  std::size_t size() const override { return (texts_.size() + batch_ - 1) / batch_; }

  Result<std::vector<HostTensor>> sample(std::size_t number) const override {
    std::vector<Encoding> rows;
    // The last batch is filled up from the beginning.
    for (std::size_t i = 0; i < batch_; ++i) {
      MK_TRY(rows.emplace_back(), tokenizer_.encode(texts_[(number * batch_ + i) % texts_.size()]));
    }
    std::vector<HostTensor> tensors;
    for (const Port& port : inputs_) {
      std::vector<std::int64_t> values;
      for (const Encoding& row : rows)
        std::ranges::copy(row.*text_input(port.name)->values, std::back_inserter(values));
      const auto length = static_cast<std::int64_t>(tokenizer_.length());
      MK_TRY(auto tensor, converted(host_tensor<std::int64_t>(port.name, DataType::int64,
                                                              {static_cast<std::int64_t>(batch_), length}, values),
                                    port.type.element));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  std::string description() const override { return description_; }

 private:
  std::vector<std::string> texts_;
  std::string description_;
  Tokenizer tokenizer_;
  std::vector<Port> inputs_;
  std::size_t batch_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> text_samples(std::vector<std::string> texts, std::string description,
                                                   const CalibrationData& data, std::span<const Port> inputs) {
  std::int64_t length = free_length;
  std::string others;
  bool has_ids = false;
  for (const Port& port : inputs) {
    if (!text_input(port.name)) {
      others += (others.empty() ? "" : ", ") + port.name;
      continue;
    }
    has_ids = has_ids || port.name == "input_ids";
    if (port.type.shape && port.type.shape->size() == 2 && (*port.type.shape)[1].is_known())
      length = (*port.type.shape)[1].value;
  }
  if (!has_ids)
    return fail(ErrorCode::usage, "the model takes no text: it has no input input_ids", to_utf8(data.path),
                "Give its inputs as an .npz file");
  if (!others.empty())
    return fail(ErrorCode::usage, "a text says nothing of the inputs " + others, to_utf8(data.path),
                "Give all inputs as an .npz file");
  auto tokenizer = Tokenizer::load(data.assets, static_cast<std::size_t>(std::max<std::int64_t>(1, length)));
  if (!tokenizer && tokenizer.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "there is no tokenizer beside the model", to_utf8(data.assets),
                "Name the folder or id that has tokenizer.json or vocab.txt with --model-id");
  if (!tokenizer) return tl::make_unexpected(std::move(tokenizer).error());
  return std::make_unique<TextSamples>(std::move(texts), std::move(description), std::move(*tokenizer),
                                       std::vector<Port>(inputs.begin(), inputs.end()));
}

}  // namespace mk
