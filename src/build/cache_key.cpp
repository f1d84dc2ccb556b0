#include "build/cache_key.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/json.h"
#include "base/sha256.h"

namespace mk {
namespace {

struct Abbreviation {
  std::string_view task;
  std::string_view text;
};
constexpr std::array abbreviations{
    Abbreviation{"image-classification", "imgcls"},
    Abbreviation{"image-segmentation", "imgseg"},
    Abbreviation{"image-feature-extraction", "imgfeat"},
    Abbreviation{"image-to-image", "img2img"},
    Abbreviation{"image-to-text", "img2txt"},
    Abbreviation{"image-text-to-text", "imgtxt2t"},
    Abbreviation{"object-detection", "objdet"},
    Abbreviation{"depth-estimation", "depth"},
    Abbreviation{"semantic-segmentation", "semseg"},
    Abbreviation{"keypoint-detection", "kptdet"},
    Abbreviation{"keypoint-matching", "kptmtch"},
    Abbreviation{"mask-generation", "maskgen"},
    Abbreviation{"video-classification", "vidcls"},
    Abbreviation{"zero-shot-image-classification", "zsimg"},
    Abbreviation{"zero-shot-object-detection", "zsobj"},
    Abbreviation{"text-classification", "txtcls"},
    Abbreviation{"token-classification", "tokcls"},
    Abbreviation{"question-answering", "qa"},
    Abbreviation{"text-generation", "txtgen"},
    Abbreviation{"text2text-generation", "txt2txt"},
    Abbreviation{"fill-mask", "mask"},
    Abbreviation{"feature-extraction", "feat"},
    Abbreviation{"multiple-choice", "mltchs"},
    Abbreviation{"next-sentence-prediction", "nsp"},
    Abbreviation{"table-question-answering", "tabqa"},
    Abbreviation{"document-question-answering", "docqa"},
    Abbreviation{"audio-classification", "audiocls"},
    Abbreviation{"audio-frame-classification", "audfrm"},
    Abbreviation{"audio-xvector", "audxvc"},
    Abbreviation{"automatic-speech-recognition", "asr"},
    Abbreviation{"text-to-audio", "txt2aud"},
    Abbreviation{"zero-shot-audio-classification", "zsaud"},
    Abbreviation{"visual-question-answering", "vqa"},
    Abbreviation{"any-to-any", "a2a"},
    Abbreviation{"pretraining", "pretrain"},
    Abbreviation{"sequence-classification", "seqcls"},
    Abbreviation{"summarization", "summ"},
    Abbreviation{"translation", "transl"},
    Abbreviation{"zero-shot-classification", "zscls"},
};

bool is_digits(const std::string& key) {
  return !key.empty() && key.size() < 10 && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
}

// Axis numbers sort as numbers, all other keys by code point.
bool key_before(const std::string& a, const std::string& b) {
  return is_digits(a) && is_digits(b) ? std::stol(a) < std::stol(b) : a < b;
}

Json sorted(const Json& json) {
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json) list.push_back(sorted(item));
    return list;
  }
  if (!json.is_object()) return json;
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  std::ranges::sort(keys, key_before);
  Json object = Json::object();
  for (const std::string& key : keys) object[key] = sorted(json.at(key));
  return object;
}

std::string short_hash(const Json& json, std::size_t digits) {
  return sha256_hex(dump_json(sorted(json), -1)).substr(0, digits);
}

}  // namespace

std::string config_hash(const BuildConfig& config) {
  Json json = to_json(config);
  json.erase("auto");
  return short_hash(json, 16);
}

std::string task_abbreviation(std::string_view task) {
  const auto row = std::ranges::find(abbreviations, task, &Abbreviation::task);
  return std::string(row != abbreviations.end() ? row->text : task.substr(0, 8));
}

std::string cache_key(std::string_view task, const BuildConfig& config, const BuildControls& controls) {
  std::string key = task_abbreviation(task) + "_" + config_hash(config);
  Json deviations = Json::object();
  if (controls.dtype && *controls.dtype != "fp32") deviations["dtype"] = *controls.dtype;
  if (!deviations.empty()) key += "_" + short_hash(deviations, 8);
  return key;
}

Path artifact_folder(const ModelRef& model) {
  std::string slug = model.raw, identity = model.raw;
  bool unique = false;
  if (model.kind == ModelRefKind::folder || model.kind == ModelRefKind::local_onnx) {
    std::error_code ignored;
    Path path = std::filesystem::weakly_canonical(model.local_path, ignored);
    if (!path.has_filename()) path = path.parent_path();
    slug = to_utf8(path.filename());
    identity = to_utf8(path);
  } else {
    // The first underscore of such a slug is the slash, and there is no other slash.
    const std::size_t slash = slug.find_first_of("/_");
    unique = slash == std::string::npos || (slug[slash] == '/' && slug.find('/', slash + 1) == std::string::npos);
  }
  std::ranges::replace_if(
      slug, [](char c) { return c == '/' || c == '\\'; }, '_');
  if (slug.empty()) slug = "model";
  if (!unique) slug += "-" + sha256_hex(identity).substr(0, 8);
  return cache_root() / "artifacts" / path_from_utf8(slug);
}

}  // namespace mk
