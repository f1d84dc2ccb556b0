#include "hub/side_files.h"

#include <algorithm>
#include <string>

#include "base/file.h"
#include "checkpoint/gguf.h"

namespace mk {
namespace {

constexpr std::string_view side_files[] = {
    "config.json",
    "generation_config.json",
    // Images, sound, and both with text.
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "feature_extractor_config.json",
    // Tokenizers: what transformers' VOCAB_FILES_NAMES of all families name.
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "vocab.bpe",
    "encoder.json",
    "bpe.codes",
    "dict.txt",
    "entity_vocab.json",
    "normalizer.json",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "tokenizer.model",
    "tokenizer.vocab",
    "emoji.json",
    "chat_template.jinja",
    "chat_template.json",
    // sentence-transformers: pooling and its maximum length.
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
};
// A folder of named chat templates.
constexpr std::string_view template_folder = "additional_chat_templates/";
constexpr std::string_view template_suffix = ".jinja";

}  // namespace

bool is_side_file(std::string_view name) {
  if (name.starts_with(template_folder)) return name.ends_with(template_suffix);
  return std::find(std::begin(side_files), std::end(side_files), name) != std::end(side_files);
}

Result<std::vector<Path>> side_files_in(const Path& folder) {
  std::vector<Path> found;
  if (is_gguf(folder)) return found;
  MK_TRY(const auto names, list_folder(folder));
  for (const Path& name : names) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder / name, ignored)) {
      if (is_side_file(to_utf8(name)) && std::filesystem::exists(folder / name, ignored)) found.push_back(name);
      continue;
    }
    if (to_utf8(name) != "additional_chat_templates" && to_utf8(name) != "1_Pooling") continue;
    MK_TRY(const auto inner, list_folder(folder / name));
    for (const Path& file : inner)
      if (is_side_file(to_utf8(name) + "/" + to_utf8(file))) found.push_back(name / file);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace mk
