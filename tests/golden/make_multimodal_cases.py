#!/usr/bin/env python3
"""Golden cases of models of images, texts and sounds, with options that few checkpoints have: tests/data/option_cases.

    make_multimodal_cases.py OUT [NAME]

As make_option_cases.py, for classes with nested configurations and inputs of their own kinds.
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from make_option_cases import describe, redraw
from safetensors.torch import save_file

TOWER = dict(hidden_size=16, intermediate_size=19, num_hidden_layers=2, num_attention_heads=4)
CLIP_TEXT = dict(**TOWER, vocab_size=40, max_position_embeddings=12, projection_dim=10)
CLIP_VISION = dict(**TOWER, image_size=14, patch_size=4, projection_dim=10)


def random(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(11)) * 2 - 1


def ids(batch, length, vocabulary, last=None, mask=True, padding=0):
    """Random ids; the rows end at different places, in `last`."""
    made = torch.randint(5, vocabulary - 1, (batch, length), generator=torch.Generator().manual_seed(7))
    ones = torch.ones_like(made)
    for row in range(batch):
        end = length - 1 - 2 * row
        if last is not None:
            made[row, end] = last
        made[row, end + 1:] = padding
        ones[row, end + 1:] = 0
    return {"input_ids": made, **({"attention_mask": ones} if mask else {})}


def clip_model(text, vision, **top):
    return tf.CLIPConfig(text_config={**CLIP_TEXT, **text}, vision_config={**CLIP_VISION, **vision}, **top)


def siglip_model(text, vision, **top):
    return tf.SiglipConfig(text_config={**TOWER, "vocab_size": 40, "max_position_embeddings": 12, **text}, vision_config={**TOWER, "image_size": 14, "patch_size": 4, **vision}, **top)


class RegressionHead(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.out_proj = torch.nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, x):
        return self.out_proj(torch.tanh(self.dense(x)))


class Wav2Vec2ForSpeechClassification(tf.models.wav2vec2.modeling_wav2vec2.Wav2Vec2PreTrainedModel):
    """What the card of audeering/wav2vec2-large-robust-12-ft-emotion-msp-dim describes."""

    def __init__(self, config):
        super().__init__(config)
        self.wav2vec2 = tf.Wav2Vec2Model(config)
        self.classifier = RegressionHead(config)
        self.init_weights()

    def forward(self, input_values):
        pooled = self.wav2vec2(input_values)[0].mean(dim=1)
        return {"hidden_states": pooled, "logits": self.classifier(pooled)}


def speech(cls, mt, seed=0, batch=2, samples=400, **options):
    config = dict(**TOWER, vocab_size=11, conv_dim=[6, 8, 8], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 2], num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, num_labels=3, classifier_proj_size=7)
    return cls, getattr(tf, mt + "Config")(**{**config, **options}), {"input_values": random(batch, samples)}


def blip_model(text, vision):
    return tf.BlipConfig(text_config={**TOWER, "vocab_size": 40, "max_position_embeddings": 12, **text}, vision_config={**TOWER, "image_size": 14, "patch_size": 4, **vision})


def owl_model(stem, text, vision, projection=12):
    return getattr(tf, stem + "Config")(text_config={**TOWER, "hidden_size": 12, "vocab_size": 40, "max_position_embeddings": 12, **text}, vision_config={**TOWER, "image_size": 14, "patch_size": 4, **vision}, projection_dim=projection)


def owl_inputs(texts, images, channels=3):
    made = ids(texts, 9, 40, 39)
    made["input_ids"][1, 0] = 0
    return {**made, "pixel_values": random(images, channels, 14, 14)}


def sam_model(vision=None, prompt=None, decoder=None):
    return tf.SamConfig(vision_config={**TOWER, "output_channels": 16, "image_size": 20, "patch_size": 4, "mlp_dim": 19, "window_size": 3, "global_attn_indexes": [1], "num_pos_feats": 8, **(vision or {})},
                        prompt_encoder_config={"hidden_size": 16, "image_size": 20, "patch_size": 4, "mask_input_channels": 8, **(prompt or {})},
                        mask_decoder_config={"hidden_size": 16, "mlp_dim": 9, "num_hidden_layers": 2, "num_attention_heads": 2, "iou_head_hidden_dim": 11, **(decoder or {})})


def sam2_model(config=tf.Sam2Config, backbone=None, vision=None, prompt=None, decoder=None):
    stages = {"hidden_size": 8, "image_size": [64, 64], "window_positional_embedding_background_size": [3, 3], "blocks_per_stage": [1, 2, 2, 1], "embed_dim_per_stage": [8, 16, 20, 24],
              "num_attention_heads_per_stage": [1, 2, 2, 4], "window_size_per_stage": [4, 2, 3, 2], "global_attention_blocks": [4], "num_query_pool_stages": 3, "mlp_ratio": 2.0}
    return config(vision_config={"backbone_config": {"model_type": "sam2_hiera_det_model", **stages, **(backbone or {})}, "backbone_channel_list": [24, 20, 16, 8], "backbone_feature_sizes": [[16, 16], [8, 8], [4, 4]], "fpn_hidden_size": 16, **(vision or {})},
                  prompt_encoder_config={"hidden_size": 16, "image_size": 64, "patch_size": 16, "mask_input_channels": 8, **(prompt or {})},
                  mask_decoder_config={"hidden_size": 16, "mlp_dim": 9, "num_hidden_layers": 2, "num_attention_heads": 2, "iou_head_hidden_dim": 11, **(decoder or {})})


def sam2_video_model():
    # a small memory, which the graphs of one frame do not have
    small = dict(memory_attention_hidden_size=16, memory_attention_num_layers=1, memory_attention_feed_forward_hidden_size=8, memory_encoder_hidden_size=16, memory_encoder_output_channels=4, mask_downsampler_embed_dim=16, mask_downsampler_total_stride=4, memory_fuser_num_layers=1, memory_fuser_embed_dim=16, memory_fuser_intermediate_dim=8, memory_attention_rope_feat_sizes=[4, 4], num_maskmem=1, image_size=64)
    return sam2_model(lambda **parts: tf.Sam2VideoConfig(**parts, **small))


def finer_inputs(batch, side, width=16):
    return {"high_res_features0": random(batch, width, 4 * side, 4 * side), "high_res_features1": random(batch, width, 2 * side, 2 * side)}


def whole_frame(model, **inputs):
    made = model(**inputs)
    return {"masks": made.pred_masks, "iou_scores": made.iou_scores}


def whole_video_frame(model, pixel_values, input_points, input_labels):
    maps = model.get_image_features(pixel_values)[0]
    maps[-1] = maps[-1] + model.no_memory_embedding
    image = [m.permute(1, 2, 0).reshape(pixel_values.shape[0], -1, *size) for m, size in zip(maps, model.backbone_feature_sizes)]
    sparse, dense = model.prompt_encoder(input_points, input_labels, None, None)
    places = model.get_image_wide_positional_embeddings().repeat(pixel_values.shape[0], 1, 1, 1)
    masks, scores = model.mask_decoder(image_embeddings=image[-1], image_positional_embeddings=places, sparse_prompt_embeddings=sparse, dense_prompt_embeddings=dense, multimask_output=True, high_resolution_features=image[:-1])[:2]
    return {"masks": masks, "iou_scores": scores}


def pyramid(model, pixel_values):
    vision = getattr(model, "vision_encoder", model)
    fine, middle, coarse = vision(pixel_values).fpn_hidden_states
    return {"image_embeddings": coarse, "high_res_features1": fine, "high_res_features2": middle}


def points(batch, sets, count, labels=(1, 0, -1, -10)):
    generator = torch.Generator().manual_seed(5)
    kinds = torch.tensor(labels)[torch.arange(batch * sets * count) % len(labels)]
    return {"input_points": torch.rand((batch, sets, count, 2), generator=generator) * 20, "input_labels": kinds.reshape(batch, sets, count)}


def mask_inputs(batch, side, width=16):
    return {"image_embeddings": random(batch, width, side, side), "mask_input": random(batch, 1, 4 * side, 4 * side), "use_mask_input": torch.arange(batch).float() / max(1, batch - 1)}


def decode_masks(model, input_points, input_labels, image_embeddings, mask_input, use_mask_input, **finer):
    """The decoder alone: a mask as prompt counts as far as use_mask_input says."""
    batch, size = image_embeddings.shape[0], model.config.prompt_encoder_config.image_size
    use = use_mask_input[:, None, None, None]
    sparse, with_mask = model.prompt_encoder(input_points, input_labels, None, mask_input)
    _, without = model.prompt_encoder(input_points, input_labels, None, None)
    if finer:
        image_embeddings = image_embeddings + model.no_memory_embedding.reshape(1, -1, 1, 1)
        finer = {"high_resolution_features": [model.mask_decoder.conv_s0(finer["high_res_features0"]), model.mask_decoder.conv_s1(finer["high_res_features1"])]}
    low, iou = model.mask_decoder(image_embeddings=image_embeddings, image_positional_embeddings=model.get_image_wide_positional_embeddings().repeat(batch, 1, 1, 1),
                                  sparse_prompt_embeddings=sparse, dense_prompt_embeddings=use * with_mask + (1 - use) * without, multimask_output=True, **finer)[:2]
    masks = torch.nn.functional.interpolate(low.flatten(0, 1), size=(size, size), mode="bilinear", align_corners=False).unflatten(0, low.shape[:2])
    return {"masks": masks, "iou_scores": iou, "low_res_masks": low}


def embed_image(model, pixel_values):
    return {"image_embeddings": model.get_image_embeddings(pixel_values)}


OWL = ("logits", "pred_boxes", "text_embeds", "image_embeds")

# name -> class, configuration, inputs, the outputs that count, and what computes them
CASES = {
    "clip.zero-shot-image-classification.old-end": lambda: (tf.CLIPModel, clip_model(dict(hidden_size=12, eos_token_id=2, hidden_act="gelu", num_attention_heads=3), dict(num_channels=1, layer_norm_eps=1e-2), projection_dim=6), {**ids(3, 9, 40, 39), "pixel_values": random(3, 1, 14, 14)}),
    "clip_text_model.feature-extraction.end-7": lambda: (tf.CLIPTextModelWithProjection, tf.CLIPTextConfig(**{**CLIP_TEXT, "eos_token_id": 7, "num_hidden_layers": 1, "hidden_act": "gelu_new"}), ids(2, 12, 40, 7)),
    "clip_text_model.feature-extraction.states": lambda: (tf.CLIPTextModel, tf.CLIPTextConfig(**{**CLIP_TEXT, "eos_token_id": 39}), ids(2, 5, 40, 39, mask=False)),
    "clip_vision_model.image-feature-extraction.states": lambda: (tf.CLIPVisionModel, tf.CLIPVisionConfig(**{**CLIP_VISION, "hidden_act": "silu"}), {"pixel_values": random(2, 3, 14, 14)}),
    "clip.image-classification.mean": lambda: (tf.CLIPForImageClassification, clip_model({}, {}, num_labels=3), {"pixel_values": random(2, 3, 14, 14)}),
    "siglip.zero-shot-image-classification.projected": lambda: (tf.SiglipModel, siglip_model(dict(hidden_size=12, num_attention_heads=3, projection_size=16, hidden_act="gelu"), dict(num_channels=1, layer_norm_eps=1e-2)), {**ids(3, 9, 40, mask=False), "pixel_values": random(3, 1, 14, 14)}),
    "siglip_text_model.feature-extraction.mask": lambda: (tf.SiglipTextModel, tf.SiglipTextConfig(**TOWER, vocab_size=40, max_position_embeddings=12, projection_size=7), ids(2, 9, 40)),
    "siglip_vision_model.image-feature-extraction.one-layer": lambda: (tf.SiglipVisionModel, tf.SiglipVisionConfig(**{**TOWER, "num_hidden_layers": 1}, image_size=14, patch_size=4), {"pixel_values": random(2, 3, 14, 14)}),
    "siglip.image-classification.no-head": lambda: (tf.SiglipForImageClassification, siglip_model({}, dict(vision_use_head=False), num_labels=3), {"pixel_values": random(2, 3, 14, 14)}),
    "wav2vec2.feature-extraction.layer-norm": lambda: speech(tf.Wav2Vec2Model, "Wav2Vec2", feat_extract_norm="layer", conv_bias=True, feat_extract_activation="relu", num_conv_pos_embeddings=7, hidden_act="gelu_new"),
    "wav2vec2.automatic-speech-recognition.adapters": lambda: speech(tf.Wav2Vec2ForCTC, "Wav2Vec2", do_stable_layer_norm=True, adapter_attn_dim=5, add_adapter=True, output_hidden_size=12, num_adapter_layers=2, layer_norm_eps=1e-2),
    "wav2vec2.audio-classification.layer-sum": lambda: speech(tf.Wav2Vec2ForSequenceClassification, "Wav2Vec2", use_weighted_layer_sum=True, mask_time_prob=0.0),
    "wav2vec2.audio-classification.emotion": lambda: speech(Wav2Vec2ForSpeechClassification, "Wav2Vec2", do_stable_layer_norm=True),
    "wav2vec2.audio-frame-classification.stable-layer-sum": lambda: speech(tf.Wav2Vec2ForAudioFrameClassification, "Wav2Vec2", use_weighted_layer_sum=True, do_stable_layer_norm=True),
    "wav2vec2.audio-xvector.small": lambda: speech(tf.Wav2Vec2ForXVector, "Wav2Vec2", tdnn_dim=[6, 9], tdnn_kernel=[3, 2], tdnn_dilation=[2, 1], xvector_output_dim=5),
    "hubert.automatic-speech-recognition.batch-norm": lambda: speech(tf.HubertForCTC, "Hubert", conv_pos_batch_norm=True, feat_proj_layer_norm=False),
    "hubert.audio-classification.layer-sum": lambda: speech(tf.HubertForSequenceClassification, "Hubert", use_weighted_layer_sum=True, do_stable_layer_norm=True, adapter_attn_dim=5),
    "blip.image-text-to-text.untied": lambda: (tf.BlipForConditionalGeneration, blip_model(dict(hidden_size=12, num_attention_heads=3, tie_word_embeddings=False, hidden_act="relu", layer_norm_eps=1e-3), dict(hidden_act="quick_gelu")), {**ids(2, 7, 40), "pixel_values": random(2, 3, 14, 14)}, ("logits",)),
    "blip.image-to-text.steps": lambda: (tf.BlipForConditionalGeneration, blip_model(dict(hidden_size=12, num_attention_heads=3), {}), {**ids(2, 7, 40, mask=False), "pixel_values": random(2, 3, 14, 14)}, ("logits",)),
    "owlvit.zero-shot-object-detection.padded-query": lambda: (tf.OwlViTForObjectDetection, owl_model("OwlViT", dict(hidden_act="gelu"), dict(layer_norm_eps=1e-2)), owl_inputs(4, 2), OWL),
    "owlv2.zero-shot-object-detection.gray": lambda: (tf.Owlv2ForObjectDetection, owl_model("Owlv2", {}, dict(num_channels=1, num_hidden_layers=1)), owl_inputs(3, 1, 1), OWL),
    "owlvit.feature-extraction.similar": lambda: (tf.OwlViTModel, owl_model("OwlViT", {}, {}, 7), owl_inputs(3, 3)),
    "sam.image-segmentation.two-sets": lambda: (tf.SamModel, sam_model(dict(use_rel_pos=False, qkv_bias=False, layer_norm_eps=1e-2, hidden_act="relu"), {}, dict(attention_downsample_rate=1, num_multimask_outputs=2, iou_head_depth=2, hidden_act="gelu", layer_norm_eps=1e-3)), {"pixel_values": random(2, 3, 20, 20), **points(2, 2, 3)}, ("iou_scores", "pred_masks")),
    "sam.mask-generation.masked": lambda: (tf.SamModel, sam_model(prompt=dict(hidden_act="relu", layer_norm_eps=1e-2)), {**points(2, 1, 5), **mask_inputs(2, 5)}, None, decode_masks),
    "sam.feature-extraction.no-absolute": lambda: (tf.SamModel, sam_model(dict(use_abs_pos=False, window_size=0, num_channels=1)), {"pixel_values": random(2, 1, 20, 20)}, None, embed_image),
    "sam_vision_model.image-feature-extraction.alone": lambda: (tf.SamVisionModel, sam_model(dict(window_size=2)).vision_config, {"pixel_values": random(1, 3, 20, 20)}),
    "sam2.image-segmentation.two-sets": lambda: (tf.Sam2Model, sam2_model(), {"pixel_values": random(2, 3, 64, 64), **points(2, 2, 3)}, None, whole_frame),
    "sam2.mask-generation.masked": lambda: (tf.Sam2Model, sam2_model(prompt=dict(hidden_act="relu"), decoder=dict(attention_downsample_rate=1, num_hidden_layers=3, num_multimask_outputs=2)), {**points(2, 1, 5, (1, 0, 3, -1, -10, 2)), **mask_inputs(2, 4), **finer_inputs(2, 4)}, None, decode_masks),
    "sam2.feature-extraction.pyramid": lambda: (tf.Sam2Model, sam2_model(backbone=dict(num_query_pool_stages=3, window_size_per_stage=[8, 4, 14, 7], global_attention_blocks=[4], hidden_act="relu", num_channels=1), vision=dict(fpn_top_down_levels=[1, 2])), {"pixel_values": random(2, 1, 64, 64)}, None, pyramid),
    "sam2_video.image-segmentation.frame": lambda: (tf.Sam2VideoModel, sam2_video_model(), {"pixel_values": random(1, 3, 64, 64), **points(1, 1, 2)}, None, whole_video_frame),
    "sam2_vision_model.image-feature-extraction.alone": lambda: (tf.Sam2VisionModel, sam2_model().vision_config, {"pixel_values": random(1, 3, 64, 64)}, None, pyramid),
}


def make_case(folder, model_class, config, inputs, outputs=None, run=None):
    made = model_class._from_config(config, attn_implementation="eager")
    redraw(made, torch.Generator().manual_seed(sum(map(ord, folder.name))))
    made.tie_weights()
    made.save_pretrained(folder)
    model = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        result = run(model, **inputs) if run else model(**inputs)
    results = {k: v.clone(memory_format=torch.contiguous_format) for k, v in result.items() if isinstance(v, torch.Tensor) and k != "loss" and (outputs is None or k in outputs)}
    save_file(inputs, folder / "inputs.safetensors")
    save_file(results, folder / "outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    case = {"name": folder.name, "model_type": model.config.model_type, "task": folder.name.split(".")[1],
            "architecture": model_class.__name__, "inputs": describe(inputs), "outputs": describe(results),
            "atol": 2e-4, "rtol": 2e-4, "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    out, only = pathlib.Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) > 2 else "")
    for name, make in CASES.items():
        if only in name:
            make_case(out / ("pair_cases" if name.endswith(".steps") else "option_cases") / name, *make())
            print("made", name, flush=True)


if __name__ == "__main__":
    main()
