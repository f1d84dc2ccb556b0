// From the names of transformers' classes to tasks. Names follow a scheme, family and head (BertForMaskedLM), so that a
// table of heads tells nearly all; a head that means another task in some families has a row for each of them first.

#include <algorithm>
#include <array>

#include "hub/tasks.h"

namespace mk {
namespace {

struct HeadRow {
  std::string_view family;  // the class name begins so; empty is any
  std::string_view head;    // and ends so
  std::string_view task;
};

// The first row that fits counts.
constexpr HeadRow head_rows[] = {
    {"", "ForSequenceClassification", "text-classification"},
    {"Wav2Vec2", "ForSpeechClassification", "audio-classification"},
    {"", "ForTokenClassification", "token-classification"},
    {"Vilt", "ForQuestionAnswering", "visual-question-answering"},
    {"Blip", "ForQuestionAnswering", "visual-question-answering"},
    {"Lxmert", "ForQuestionAnswering", "visual-question-answering"},
    {"Tapas", "ForQuestionAnswering", "table-question-answering"},
    {"", "ForQuestionAnswering", "question-answering"},
    {"", "ForQuestionAnsweringSimple", "question-answering"},
    {"", "ForMultipleChoice", "multiple-choice"},
    {"", "ForNextSentencePrediction", "next-sentence-prediction"},
    {"", "ForMaskedLM", "fill-mask"},
    {"FlaubertWithLMHeadModel", "", "fill-mask"},
    {"XLMWithLMHeadModel", "", "fill-mask"},
    {"", "ForMaskedImageModeling", "masked-im"},
    {"Git", "ForCausalLM", "image-text-to-text"},
    {"Fuyu", "ForCausalLM", "image-text-to-text"},
    {"", "ForCausalLM", "text-generation"},
    {"", "LMHeadModel", "text-generation"},

    {"Whisper", "ForConditionalGeneration", "automatic-speech-recognition"},
    {"Speech2Text", "ForConditionalGeneration", "automatic-speech-recognition"},
    {"Moonshine", "ForConditionalGeneration", "automatic-speech-recognition"},
    {"Blip", "ForConditionalGeneration", "image-text-to-text"},
    {"InstructBlip", "ForConditionalGeneration", "image-text-to-text"},
    {"Llava", "ForConditionalGeneration", "image-text-to-text"},
    {"PaliGemma", "ForConditionalGeneration", "image-text-to-text"},
    {"Gemma3For", "ConditionalGeneration", "image-text-to-text"},
    {"Idefics", "ForConditionalGeneration", "image-text-to-text"},
    {"SmolVLM", "ForConditionalGeneration", "image-text-to-text"},
    {"Qwen2VL", "ForConditionalGeneration", "image-text-to-text"},
    {"Qwen2_5_VL", "ForConditionalGeneration", "image-text-to-text"},
    {"Mllama", "ForConditionalGeneration", "image-text-to-text"},
    {"Florence2", "ForConditionalGeneration", "image-text-to-text"},
    {"Kosmos2", "ForConditionalGeneration", "image-text-to-text"},
    {"Pix2Struct", "ForConditionalGeneration", "image-to-text"},
    {"", "ForConditionalGeneration", "text2text-generation"},
    {"MarianMTModel", "", "text2text-generation"},
    {"EncoderDecoderModel", "", "text2text-generation"},
    {"VisionEncoderDecoderModel", "", "image-to-text"},
    {"SpeechEncoderDecoderModel", "", "automatic-speech-recognition"},

    {"", "ForImageClassification", "image-classification"},
    {"", "ForImageClassificationWithTeacher", "image-classification"},
    {"", "ForVideoClassification", "video-classification"},
    {"", "ForSemanticSegmentation", "image-segmentation"},
    {"", "ForInstanceSegmentation", "image-segmentation"},
    {"", "ForUniversalSegmentation", "image-segmentation"},
    {"", "ForImageSegmentation", "image-segmentation"},
    {"", "ForSegmentation", "image-segmentation"},
    {"Owl", "ForObjectDetection", "zero-shot-object-detection"},
    {"GroundingDino", "ForObjectDetection", "zero-shot-object-detection"},
    {"OmDetTurbo", "ForObjectDetection", "zero-shot-object-detection"},
    {"", "ForObjectDetection", "object-detection"},
    {"", "ForDepthEstimation", "depth-estimation"},
    {"", "ForImageSuperResolution", "image-to-image"},
    {"", "ForPoseEstimation", "keypoint-detection"},
    {"", "ForKeypointDetection", "keypoint-detection"},
    {"", "ForKeypointMatching", "keypoint-matching"},
    {"SamModel", "", "mask-generation"},
    {"SamHQModel", "", "mask-generation"},
    {"Sam2Model", "", "mask-generation"},
    {"Sam2VideoModel", "", "mask-generation"},

    {"", "ForCTC", "automatic-speech-recognition"},
    {"", "ForAudioClassification", "audio-classification"},
    {"", "ForAudioFrameClassification", "audio-frame-classification"},
    {"", "ForXVector", "audio-xvector"},
    {"SpeechT5ForSpeechToText", "", "automatic-speech-recognition"},
    {"", "ForTextToSpeech", "text-to-audio"},
    {"", "ForTextToSpectrogram", "text-to-audio"},
    {"", "ForTextToWaveform", "text-to-audio"},
    {"VitsModel", "", "text-to-audio"},

    {"CLIPModel", "", "zero-shot-image-classification"},
    {"AltCLIPModel", "", "zero-shot-image-classification"},
    {"ChineseCLIPModel", "", "zero-shot-image-classification"},
    {"SiglipModel", "", "zero-shot-image-classification"},
    {"Siglip2Model", "", "zero-shot-image-classification"},
    {"AlignModel", "", "zero-shot-image-classification"},
    {"ClapModel", "", "zero-shot-audio-classification"},

    {"", "ForPrediction", "time-series-forecasting"},
    {"", "ForPreTraining", "feature-extraction"},
    {"", "Model", "feature-extraction"},
    {"", "ModelWithProjection", "feature-extraction"},
    {"", "Encoder", "feature-extraction"},
    {"", "Backbone", "feature-extraction"},
};

// Classifiers of sound whose classes are named as those of text.
constexpr std::string_view sound_families[] = {"Wav2Vec2", "Hubert", "WavLM", "UniSpeech", "Data2VecAudio", "SEW"};

// Types whose main input is pixel_values, as transformers' main_input_name has it.
constexpr std::string_view image_types[] = {
    "altclip_vision_model",
    "beit",
    "bit",
    "blip_vision_model",
    "clip_vision_model",
    "clipseg_vision_model",
    "conditional_detr",
    "convnext",
    "convnextv2",
    "cvt",
    "d_fine",
    "data2vec-vision",
    "deformable_detr",
    "deit",
    "depth_anything",
    "depth_pro",
    "deta",
    "detr",
    "dinat",
    "dinov2",
    "dinov2_with_registers",
    "dinov3_convnext",
    "dinov3_vit",
    "dpt",
    "efficientformer",
    "efficientnet",
    "focalnet",
    "glpn",
    "hgnet_v2",
    "hiera",
    "ijepa",
    "levit",
    "mask2former",
    "maskformer",
    "maskformer-swin",
    "mlcd",
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilevit",
    "mobilevitv2",
    "nat",
    "oneformer",
    "poolformer",
    "pvt",
    "pvt_v2",
    "regnet",
    "resnet",
    "rt_detr",
    "rt_detr_resnet",
    "rt_detr_v2",
    "sam2_vision_model",
    "sam_vision_model",
    "segformer",
    "siglip2_vision_model",
    "siglip_vision_model",
    "swiftformer",
    "swin",
    "swin2sr",
    "swinv2",
    "table-transformer",
    "textnet",
    "timesformer",
    "timm_backbone",
    "timm_wrapper",
    "upernet",
    "van",
    "videomae",
    "vit",
    "vit_hybrid",
    "vit_mae",
    "vit_msn",
    "vitdet",
    "vitmatte",
    "vitpose_backbone",
    "vivit",
    "vjepa2",
    "yolos",
    "zoedepth",
};
static_assert(std::is_sorted(std::begin(image_types), std::end(image_types)));

}  // namespace

bool takes_images(std::string_view model_type) {
  return std::binary_search(std::begin(image_types), std::end(image_types), model_type);
}

std::string task_of_class(std::string_view class_name, std::string_view model_type) {
  for (const std::string_view framework : {"TF", "Flax"})
    if (class_name.starts_with(framework) && class_name.size() > framework.size())
      class_name.remove_prefix(framework.size());
  const auto fits = [&](const HeadRow& row) {
    return class_name.starts_with(row.family) && class_name.ends_with(row.head) &&
           (!row.head.empty() || class_name == row.family);
  };
  const auto* row = std::find_if(std::begin(head_rows), std::end(head_rows), fits);
  if (row == std::end(head_rows)) return {};
  const bool is_sound = std::any_of(std::begin(sound_families), std::end(sound_families),
                                    [&](std::string_view family) { return class_name.starts_with(family); });
  if (is_sound && row->task == "text-classification") return "audio-classification";
  if (row->task == "feature-extraction" && takes_images(model_type)) return "image-feature-extraction";
  return std::string(row->task);
}

}  // namespace mk
