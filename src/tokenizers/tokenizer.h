#pragma once
// Texts to token ids, by the model's own tokenizer (Hugging Face's tokenizers library in the bridge): tokenizer.json,
// or BERT's vocab.txt where there is no such file. Special tokens are added, as transformers' tokenizers do it when
// they are called.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"

struct MkbTokenizer;

namespace mk {

// Of one text; all three of the same length.
struct Encoding {
  std::vector<std::int64_t> input_ids;
  std::vector<std::int64_t> attention_mask;  // 1, and 0 for padding
  std::vector<std::int64_t> token_type_ids;
};

// Encoding may be done by several threads at once.
class Tokenizer {
 public:
  // From a folder with tokenizer.json, or vocab.txt and (optionally) tokenizer_config.json. Texts are cut and padded to
  // `length` tokens, on the sides that tokenizer_config.json says. not_found where there are no such files, unsupported
  // for a vocab.txt of another kind than BERT's, malformed.
  static Result<Tokenizer> load(const Path& folder, std::size_t length);

  Result<Encoding> encode(std::string_view text, const std::optional<std::string>& pair = std::nullopt) const;
  std::size_t length() const { return length_; }

 private:
  struct Close {
    void operator()(MkbTokenizer* tokenizer) const;
  };
  std::unique_ptr<MkbTokenizer, Close> handle_;
  std::string where_;
  std::size_t length_ = 0;
  std::int64_t padding_id_ = 0;
  std::int64_t padding_type_ = 0;
  bool pads_left_ = false;
};

}  // namespace mk
