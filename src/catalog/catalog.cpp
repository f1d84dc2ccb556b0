#include "catalog/catalog.h"

#include <algorithm>

#include "base/text.h"

namespace mk {
namespace {

constexpr auto cpu = DeviceKind::cpu, gpu = DeviceKind::gpu, npu = DeviceKind::npu;

constexpr std::array<CatalogSupport, 7> everywhere{{
    {"cpu", "cpu", {cpu}},
    {"dml", "dml", {gpu}},
    {"qnn", "qnn", {gpu, npu}},
    {"openvino", "openvino", {cpu, gpu, npu}},
    {"vitisai", "vitisai", {npu}},
    {"trtrtx", "nvtensorrtrtx", {gpu}},
    {"migraphx", "migraphx", {gpu}},
}};
constexpr std::span<const CatalogSupport> on_cpu = std::span(everywhere).first<1>();

// clang-format off
constexpr std::array<CatalogEntry, 66> entries{{
    {"BAAI/bge-base-en-v1.5", "", "feature-extraction", "bert", 127.4, everywhere},
    {"BAAI/bge-base-en-v1.5", "", "sentence-similarity", "bert", 128.0, everywhere},
    {"BAAI/bge-large-en-v1.5", "", "sentence-similarity", "bert", 351.8, everywhere},
    {"BAAI/bge-m3", "", "feature-extraction", "xlm-roberta", 796.5, everywhere},
    {"BAAI/bge-m3", "", "sentence-similarity", "xlm-roberta", 797.5, everywhere},
    {"BAAI/bge-small-en-v1.5", "", "feature-extraction", "bert", 43.7, everywhere},
    {"BAAI/bge-small-en-v1.5", "", "sentence-similarity", "bert", 43.9, everywhere},
    {"Babelscape/wikineural-multilingual-ner", "", "token-classification", "bert", 257.9, everywhere},
    {"FacebookAI/roberta-base", "", "fill-mask", "roberta", 194.7, everywhere},
    {"FacebookAI/roberta-large", "", "fill-mask", "roberta", 440.8, everywhere},
    {"FacebookAI/xlm-roberta-base", "", "fill-mask", "xlm-roberta", 634.4, everywhere},
    {"Intel/bert-base-uncased-mrpc", "", "feature-extraction", "bert", 127.4, everywhere},
    {"Intel/bert-base-uncased-mrpc", "", "text-classification", "bert", 128.0, everywhere},
    {"Isotonic/distilbert_finetuned_ai4privacy_v2", "", "token-classification", "distilbert", 86.6, everywhere},
    {"ProsusAI/finbert", "", "text-classification", "bert", 128.0, everywhere},
    {"apple/mobilevit-small", "", "image-classification", "mobilevit", 6.1, everywhere},
    {"cardiffnlp/twitter-roberta-base-sentiment-latest", "", "text-classification", "roberta", 157.7, everywhere},
    {"dbmdz/bert-large-cased-finetuned-conll03-english", "", "token-classification", "bert", 347.9, everywhere},
    {"deepset/bert-large-uncased-whole-word-masking-squad2", "", "question-answering", "bert", 350.9, everywhere},
    {"deepset/roberta-base-squad2", "", "question-answering", "roberta", 157.2, everywhere},
    {"deepset/tinyroberta-squad2", "", "question-answering", "roberta", 116.2, everywhere},
    {"dima806/fairface_age_image_detection", "", "image-classification", "vit", 82.8, everywhere},
    {"distilbert/distilbert-base-cased-distilled-squad", "", "question-answering", "distilbert", 84.2, everywhere},
    {"distilbert/distilbert-base-uncased", "", "fill-mask", "distilbert", 109.5, everywhere},
    {"distilbert/distilbert-base-uncased-distilled-squad", "", "question-answering", "distilbert", 86.5, everywhere},
    {"distilbert/distilbert-base-uncased-finetuned-sst-2-english", "", "text-classification", "distilbert", 87.0, everywhere},
    {"dslim/bert-base-NER", "", "token-classification", "bert", 125.2, everywhere},
    {"facebook/convnext-tiny-224", "", "image-classification", "convnext", 27.8, everywhere},
    {"facebook/dino-vitb16", "", "image-feature-extraction", "vit", 83.4, everywhere},
    {"facebook/dino-vits16", "", "image-feature-extraction", "vit", 21.6, everywhere},
    {"facebook/dinov2-small", "", "image-feature-extraction", "dinov2", 21.4, everywhere},
    {"google-bert/bert-base-multilingual-cased", "", "feature-extraction", "bert", 257.8, everywhere},
    {"google-bert/bert-base-multilingual-cased", "", "fill-mask", "bert", 346.5, everywhere},
    {"google-bert/bert-base-multilingual-uncased", "", "fill-mask", "bert", 316.4, everywhere},
    {"google-bert/bert-base-uncased", "", "fill-mask", "bert", 150.5, everywhere},
    {"google-bert/bert-large-uncased-whole-word-masking-finetuned-squad", "", "question-answering", "bert", 350.9, everywhere},
    {"google/vit-base-patch16-224", "", "image-classification", "vit", 83.6, everywhere},
    {"google/vit-base-patch16-224-in21k", "", "image-feature-extraction", "vit", 83.4, everywhere},
    {"joeddav/xlm-roberta-large-xnli", "", "zero-shot-classification", "xlm-roberta", 781.6, everywhere},
    {"laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "", "feature-extraction", "clip", 85.4, everywhere},
    {"mattmdjaga/segformer_b2_clothes", "", "image-segmentation", "segformer", 27.4, everywhere},
    {"microsoft/resnet-18", "", "image-classification", "resnet", 11.2, everywhere},
    {"microsoft/resnet-50", "", "image-classification", "resnet", 24.6, everywhere},
    {"microsoft/swin-large-patch4-window7-224", "", "image-classification", "swin", 192.8, everywhere},
    {"microsoft/trocr-base-handwritten", "", "image-to-text", "vision-encoder-decoder", 419.5, everywhere},
    {"microsoft/trocr-base-printed", "", "image-to-text", "vision-encoder-decoder", 419.5, everywhere},
    {"microsoft/trocr-large-handwritten", "", "image-to-text", "vision-encoder-decoder", 634.1, everywhere},
    {"nvidia/segformer-b1-finetuned-ade-512-512", "", "image-segmentation", "segformer", 13.8, everywhere},
    {"nvidia/segformer-b2-finetuned-ade-512-512", "", "image-segmentation", "segformer", 27.5, everywhere},
    {"nvidia/segformer-b5-finetuned-ade-640-640", "", "image-segmentation", "segformer", 85.1, everywhere},
    {"openai/clip-vit-base-patch16", "", "feature-extraction", "clip", 85.5, everywhere},
    {"openai/clip-vit-base-patch16", "", "zero-shot-image-classification", "clip", 168.7, everywhere},
    {"openai/clip-vit-base-patch32", "", "feature-extraction", "clip", 85.5, everywhere},
    {"rizvandwiki/gender-classification", "", "image-classification", "vit", 82.8, everywhere},
    {"sentence-transformers/all-MiniLM-L6-v2", "", "feature-extraction", "bert", 33.2, everywhere},
    {"sentence-transformers/all-MiniLM-L6-v2", "", "sentence-similarity", "bert", 33.4, everywhere},
    {"sentence-transformers/all-mpnet-base-v2", "", "feature-extraction", "mpnet", 133.4, everywhere},
    {"sentence-transformers/all-mpnet-base-v2", "", "sentence-similarity", "mpnet", 134.0, everywhere},
    {"sentence-transformers/multi-qa-mpnet-base-dot-v1", "", "feature-extraction", "mpnet", 133.4, everywhere},
    {"sentence-transformers/multi-qa-mpnet-base-dot-v1", "", "sentence-similarity", "mpnet", 134.0, everywhere},
    {"sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "", "feature-extraction", "bert", 204.5, everywhere},
    {"sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", "", "sentence-similarity", "bert", 204.7, everywhere},
    {"sentence-transformers/paraphrase-multilingual-mpnet-base-v2", "", "sentence-similarity", "xlm-roberta", 450.3, everywhere},
    {"w11wo/indonesian-roberta-base-posp-tagger", "", "token-classification", "roberta", 157.2, everywhere},
    {"onnx-community/sam3-tracker-ONNX", "onnx/vision_encoder_int8.onnx", "image-feature-extraction", "sam3_tracker", 504.2, on_cpu},
    {"onnx-community/sam3-tracker-ONNX", "onnx/prompt_encoder_mask_decoder_int8.onnx", "mask-generation", "sam3_tracker", 9.6, on_cpu},
}};
// clang-format on

bool matches(const CatalogEntry& entry, const CatalogFilter& filter) {
  if (filter.model_type && !equal_ignoring_case(entry.model_type, *filter.model_type)) return false;
  if (filter.task && !equal_ignoring_case(entry.task, *filter.task)) return false;
  if (!filter.ep && !filter.device) return true;
  return std::ranges::any_of(entry.support, [&](const CatalogSupport& support) {
    return (!filter.ep || filter.ep->short_name() == support.ep) && (!filter.device || support.has(*filter.device));
  });
}

}  // namespace

bool CatalogSupport::has(DeviceKind device) const { return std::ranges::find(devices, device) != devices.end(); }

std::span<const CatalogEntry> catalog() { return entries; }

std::vector<const CatalogEntry*> find_in_catalog(const CatalogFilter& filter) {
  std::vector<const CatalogEntry*> found;
  for (const CatalogEntry& entry : entries)
    if (matches(entry, filter)) found.push_back(&entry);
  return found;
}

}  // namespace mk
