// Right ids: WordPiece (Schuster & Nakajima 2012) by hand over a small vocabulary, and Hugging Face's tokenizers 0.22.2
// for the pair and the padding.

#include "tokenizers/tokenizer.h"

#include "testing/testing.h"

namespace mk {
namespace {

using Ids = std::vector<std::int64_t>;

// 0 [PAD] 1 [UNK] 2 [CLS] 3 [SEP] 4 [MASK] 5 hello 6 world 7 un 8 ##aff 9 ##able 10 ! 11 cafe 12 你
constexpr std::string_view vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\nun\n##aff\n##able\n!\ncafe\n\u4f60\n";

TEST(Tokenizer, BertVocabulary) {
  const testing::TemporaryFolder folder;
  folder.write("vocab.txt", vocabulary);
  ASSERT_OK_AND(const auto tokenizer, Tokenizer::load(folder.path(), 8));
  ASSERT_OK_AND(const auto text, tokenizer.encode("Hello unaffable World!"));
  EXPECT_EQ(text.input_ids, (Ids{2, 5, 7, 8, 9, 6, 10, 3}));
  EXPECT_EQ(text.attention_mask, (Ids{1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(text.token_type_ids, Ids(8, 0));
  ASSERT_OK_AND(const auto padded, tokenizer.encode("caf\u00e9 \u4f60\u597d"));
  EXPECT_EQ(padded.input_ids, (Ids{2, 11, 12, 1, 3, 0, 0, 0}));
  EXPECT_EQ(padded.attention_mask, (Ids{1, 1, 1, 1, 1, 0, 0, 0}));
  ASSERT_OK_AND(const auto pair, tokenizer.encode("hello", "world [MASK]"));
  EXPECT_EQ(pair.input_ids, (Ids{2, 5, 3, 6, 4, 3, 0, 0}));
  EXPECT_EQ(pair.token_type_ids, (Ids{0, 0, 0, 1, 1, 1, 0, 0}));
  ASSERT_OK_AND(const auto cut, tokenizer.encode("hello hello hello hello hello hello hello hello world"));
  EXPECT_EQ(cut.input_ids, (Ids{2, 5, 5, 5, 5, 5, 5, 3}));
  ASSERT_OK_AND(const auto empty, tokenizer.encode(""));
  EXPECT_EQ(empty.input_ids, (Ids{2, 3, 0, 0, 0, 0, 0, 0}));
}

TEST(Tokenizer, HeedsItsConfig) {
  const testing::TemporaryFolder folder;
  folder.write("vocab.txt", vocabulary);
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "padding_side": "left",
                   "pad_token": {"content": "[MASK]"}, "pad_token_type_id": 3})");
  ASSERT_OK_AND(const auto tokenizer, Tokenizer::load(folder.path(), 5));
  ASSERT_OK_AND(const auto text, tokenizer.encode("Hello"));
  EXPECT_EQ(text.input_ids, (Ids{4, 4, 2, 1, 3}));  // Hello is not hello
  EXPECT_EQ(text.attention_mask, (Ids{0, 0, 1, 1, 1}));
  EXPECT_EQ(text.token_type_ids, (Ids{3, 3, 0, 0, 0}));
}

TEST(Tokenizer, TokenizerJson) {
  const testing::TemporaryFolder folder;
  folder.write("tokenizer.json", R"({"version": "1.0",
    "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
    "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"<pad>": 7, "<unk>": 0, "one": 1, "two": 2, "three": 3},
              "unk_token": "<unk>"}})");
  ASSERT_OK_AND(const auto tokenizer, Tokenizer::load(folder.path(), 6));
  ASSERT_OK_AND(const auto text, tokenizer.encode("Three two ONE four"));  // the file's own cut does not count
  EXPECT_EQ(text.input_ids, (Ids{3, 2, 1, 0, 7, 7}));
  EXPECT_EQ(text.attention_mask, (Ids{1, 1, 1, 1, 0, 0}));
}

TEST(Tokenizer, FilesThatAreNone) {
  const testing::TemporaryFolder folder;
  const auto nothing = Tokenizer::load(folder.path(), 8);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::not_found);
  folder.write("vocab.txt", "hello\nworld\n");
  const auto without = Tokenizer::load(folder.path(), 8);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, ErrorCode::malformed);
  EXPECT_NE(without.error().message.find("[UNK]"), std::string::npos) << without.error().to_string();
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  EXPECT_EQ(Tokenizer::load(folder.path(), 8).error().code, ErrorCode::unsupported);
  folder.write("tokenizer.json", "{");
  EXPECT_EQ(Tokenizer::load(folder.path(), 8).error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace mk
