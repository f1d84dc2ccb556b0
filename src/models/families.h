#pragma once
// Every family there is. Adding one is its file and a line here.

#include "models/family.h"

// clang-format off
#define MK_FAMILIES(row) \
  row(albert) \
  row(audio_spectrogram_transformer) \
  row(bart) \
  row(beit) \
  row(bert) \
  row(blenderbot) \
  row(blenderbot_small) \
  row(blip) \
  row(camembert) \
  row(clip) \
  row(clip_text_model) \
  row(clip_vision_model) \
  row(convbert) \
  row(convnext) \
  row(convnextv2) \
  row(deberta) \
  row(deberta_v2) \
  row(deit) \
  row(depth_anything) \
  row(detr) \
  row(dinov2) \
  row(dinov2_with_registers) \
  row(distilbert) \
  row(dpt) \
  row(efficientnet) \
  row(electra) \
  row(gemma) \
  row(gemma2) \
  row(gemma3) \
  row(gemma3_text) \
  row(gpt2) \
  row(hubert) \
  row(layoutlm) \
  row(layoutlmv3) \
  row(llama) \
  row(m2m_100) \
  row(marian) \
  row(mbart) \
  row(mistral) \
  row(mobilenet_v2) \
  row(mobilevit) \
  row(modernbert) \
  row(mpnet) \
  row(mt5) \
  row(opt) \
  row(owlv2) \
  row(owlvit) \
  row(pegasus) \
  row(phi3) \
  row(qwen2) \
  row(qwen3) \
  row(resnet) \
  row(roberta) \
  row(rt_detr) \
  row(rt_detr_v2) \
  row(sam) \
  row(sam2) \
  row(sam2_video) \
  row(sam2_vision_model) \
  row(sam_vision_model) \
  row(segformer) \
  row(siglip) \
  row(siglip_text_model) \
  row(siglip_vision_model) \
  row(smollm3) \
  row(swin) \
  row(swin2sr) \
  row(swinv2) \
  row(t5) \
  row(table_transformer) \
  row(timm_wrapper) \
  row(vision_encoder_decoder) \
  row(vit) \
  row(vitpose) \
  row(wav2vec2) \
  row(wav2vec2_emotion_regression) \
  row(whisper) \
  row(xlm_roberta) \
  row(yolos)
// clang-format on

namespace mk::models {

#define MK_DECLARE(name) extern const Family name;
MK_FAMILIES(MK_DECLARE)
#undef MK_DECLARE

}  // namespace mk::models
