#include "tokenizers/tokenizer.h"

#include <modelkit_bridge/tokenizer.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace mk {
namespace {

struct Buffer {
  MkbBuffer raw{};
  Buffer() = default;
  ~Buffer() { mkb_buffer_free(&raw); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::string text() const { return {reinterpret_cast<const char*>(raw.data), raw.size}; }
};

MkbText text_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// What tokenizer_config.json says; transformers' defaults where it says nothing.
struct TokenizerConfig {
  std::string tokenizer_class;
  bool lower_case = true;
  std::optional<bool> strip_accents;
  bool split_chinese = true;
  std::string unknown = "[UNK]", separator = "[SEP]", class_token = "[CLS]", padding = "[PAD]", mask = "[MASK]";
  std::int64_t padding_type = 0;
  bool pads_left = false;
  bool cuts_left = false;
};

// A token is a string, or an object that has it as its content.
Status take_token(std::string& target, const JsonView& value) {
  if (value.is_null()) return {};
  MK_TRY(target, value.is_object() ? value.at("content").string() : value.string());
  return {};
}

template <typename T, typename Read>
Status take(T& target, const JsonView& value, Read read) {
  if (value.is_null()) return {};
  MK_TRY(target, (value.*read)());
  return {};
}

Result<TokenizerConfig> read_config(const Path& folder) {
  TokenizerConfig config;
  const Path file = folder / "tokenizer_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return config;
  MK_TRY(const Json json, read_json(file));
  const JsonView view(json, to_utf8(file));
  if (!view.is_object()) return tl::make_unexpected(view.expected("an object"));
  MK_CHECK(take(config.tokenizer_class, view.at("tokenizer_class"), &JsonView::string));
  MK_CHECK(take(config.lower_case, view.at("do_lower_case"), &JsonView::boolean));
  MK_CHECK(take(config.strip_accents, view.at("strip_accents"), &JsonView::boolean));
  MK_CHECK(take(config.split_chinese, view.at("tokenize_chinese_chars"), &JsonView::boolean));
  MK_CHECK(take_token(config.unknown, view.at("unk_token")));
  MK_CHECK(take_token(config.separator, view.at("sep_token")));
  MK_CHECK(take_token(config.class_token, view.at("cls_token")));
  MK_CHECK(take_token(config.padding, view.at("pad_token")));
  MK_CHECK(take_token(config.mask, view.at("mask_token")));
  MK_CHECK(take(config.padding_type, view.at("pad_token_type_id"), &JsonView::integer));
  std::string side;
  MK_CHECK(take(side, view.at("padding_side"), &JsonView::string));
  config.pads_left = side == "left";
  side.clear();
  MK_CHECK(take(side, view.at("truncation_side"), &JsonView::string));
  config.cuts_left = side == "left";
  return config;
}

// Classes whose vocab.txt is WordPiece with BERT's normalizer.
constexpr std::array<std::string_view, 6> bert_classes{"BertTokenizer",     "DistilBertTokenizer", "ElectraTokenizer",
                                                       "ConvBertTokenizer", "MobileBertTokenizer", "LxmertTokenizer"};

bool is_bert(std::string_view name) {
  if (name.empty()) return true;
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return std::ranges::find(bert_classes, name) != bert_classes.end();
}

std::string files_in(const Path& folder) { return to_utf8(folder) + " has neither tokenizer.json nor vocab.txt"; }

}  // namespace

void Tokenizer::Close::operator()(MkbTokenizer* tokenizer) const { mkb_tokenizer_close(tokenizer); }

Result<Tokenizer> Tokenizer::load(const Path& folder, std::size_t length) {
  MK_TRY(const TokenizerConfig config, read_config(folder));
  const Path json = folder / "tokenizer.json";
  const Path vocabulary = folder / "vocab.txt";
  std::error_code ignored;
  Tokenizer tokenizer;
  Buffer error;
  MkbTokenizer* handle = nullptr;
  std::int32_t code = 0;
  if (std::filesystem::exists(json, ignored)) {
    tokenizer.where_ = to_utf8(json);
    MK_TRY(const std::string bytes, read_text(json));
    code = mkb_tokenizer_open(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &handle, &error.raw);
  } else if (std::filesystem::exists(vocabulary, ignored)) {
    tokenizer.where_ = to_utf8(vocabulary);
    if (!is_bert(config.tokenizer_class))
      return fail(ErrorCode::unsupported, "a vocab.txt of " + config.tokenizer_class + " cannot be read",
                  tokenizer.where_, "Save the tokenizer as tokenizer.json (transformers' fast tokenizers do)");
    const MkbBertOptions options{
        config.lower_case,         config.strip_accents ? static_cast<std::int32_t>(*config.strip_accents) : -1,
        config.split_chinese,      text_of(config.unknown),
        text_of(config.separator), text_of(config.class_token),
        text_of(config.padding),   text_of(config.mask)};
    code = mkb_tokenizer_open_bert(text_of(tokenizer.where_), &options, &handle, &error.raw);
  } else {
    return fail(ErrorCode::not_found, "no tokenizer: " + files_in(folder));
  }
  if (code != 0) return fail(ErrorCode::malformed, "the tokenizer cannot be read: " + error.text(), tokenizer.where_);
  tokenizer.handle_.reset(handle);
  Buffer problem;
  if (mkb_tokenizer_truncate(handle, length, config.cuts_left, &problem.raw) != 0)
    return fail(ErrorCode::failed, problem.text(), tokenizer.where_);
  tokenizer.length_ = length;
  tokenizer.pads_left_ = config.pads_left;
  tokenizer.padding_type_ = config.padding_type;
  for (const std::string_view token : {std::string_view(config.padding), std::string_view("<pad>")}) {
    const std::int64_t id = mkb_tokenizer_token_id(handle, text_of(token));
    if (id < 0) continue;
    tokenizer.padding_id_ = id;
    break;
  }
  return tokenizer;
}

Result<Encoding> Tokenizer::encode(std::string_view text, const std::optional<std::string>& pair) const {
  Buffer tokens, error;
  const MkbText second = text_of(pair ? std::string_view(*pair) : std::string_view());
  if (mkb_tokenizer_encode(handle_.get(), text_of(text), pair ? &second : nullptr, &tokens.raw, &error.raw) != 0)
    return fail(ErrorCode::failed, "the text cannot be tokenized: " + error.text(), where_);
  std::vector<std::uint32_t> values(tokens.raw.size / sizeof(std::uint32_t));
  if (!values.empty()) std::memcpy(values.data(), tokens.raw.data, values.size() * sizeof(std::uint32_t));
  const std::size_t count = values.size() / 2;
  const std::size_t missing = length_ > count ? length_ - count : 0;
  Encoding encoding;
  const auto pad = [&] {
    encoding.input_ids.insert(encoding.input_ids.end(), missing, padding_id_);
    encoding.attention_mask.insert(encoding.attention_mask.end(), missing, 0);
    encoding.token_type_ids.insert(encoding.token_type_ids.end(), missing, padding_type_);
  };
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count);
  if (pads_left_) pad();
  encoding.input_ids.insert(encoding.input_ids.end(), values.begin(), middle);
  encoding.attention_mask.insert(encoding.attention_mask.end(), count, 1);
  encoding.token_type_ids.insert(encoding.token_type_ids.end(), middle, values.end());
  if (!pads_left_) pad();
  return encoding;
}

}  // namespace mk
