#!/usr/bin/env python3
"""Golden cases of options that few checkpoints have: tests/data/option_cases and tests/data/activations.json.

    make_option_cases.py OUT [NAME]

Needs torch and transformers (made with torch 2.15.0, transformers 4.57.6). A case is a folder as in tests/data/cases:
the checkpoint as save_pretrained writes it, its module tree, inputs, and what the eager PyTorch model makes of them.
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from safetensors.torch import save_file

TEXT = dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=19,
            max_position_embeddings=20)
DISTIL = dict(vocab_size=40, dim=15, n_layers=2, n_heads=3, hidden_dim=19, max_position_embeddings=20)
VIT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=19, image_size=[12, 20],
           patch_size=[4, 5], num_channels=1, num_labels=3, qkv_bias=False, hidden_act="quick_gelu", layer_norm_eps=1e-2,
           pooler_output_size=5, pooler_act="relu", encoder_stride=4)
RESNET = dict(embedding_size=4, hidden_sizes=[4, 8, 12], depths=[1, 2, 1], num_labels=3, num_channels=2)
CONVNEXT = dict(hidden_sizes=[4, 6, 8], depths=[2, 1, 1], num_stages=3, image_size=30, num_labels=3)
DETR = dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, d_model=16, num_queries=4, encoder_layers=1,
            decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=20,
            num_labels=3, auxiliary_loss=True, position_embedding_type="learned", activation_function="gelu")
DETR_RESNET = dict(model_type="resnet", embedding_size=4, hidden_sizes=[4, 8, 12], depths=[1, 2, 1])

# name -> class, options, inputs: (batch, sequence), with token types or not; (batch, choices, sequence); or an image.
CASES = {
    "bert.feature-extraction.relative_key_query": ("BertModel", {**TEXT, "position_embedding_type": "relative_key_query"}, (2, 11), True),
    "roberta.feature-extraction.relative_key": ("RobertaModel", {**TEXT, "position_embedding_type": "relative_key", "max_position_embeddings": 13}, (2, 11), False),
    "bert.fill-mask.untied": ("BertForMaskedLM", {**TEXT, "tie_word_embeddings": False, "hidden_act": "gelu_new"}, (2, 7), True),
    "bert.feature-extraction.pruned": ("BertModel", {**TEXT, "pruned_heads": {0: [1, 2], 1: [0]}}, (2, 7), True),
    "bert.multiple-choice.types": ("BertForMultipleChoice", {**TEXT, "type_vocab_size": 3, "layer_norm_eps": 1e-3}, (2, 3, 7), True),
    "bert.next-sentence-prediction.plain": ("BertForNextSentencePrediction", TEXT, (2, 7), True),
    "roberta.multiple-choice.one-type": ("RobertaForMultipleChoice", {**TEXT, "type_vocab_size": 1}, (1, 2, 7), False),
    "roberta.feature-extraction.pad3": ("RobertaModel", {**TEXT, "pad_token_id": 3}, (2, 7), False),
    "xlm-roberta.fill-mask.untied": ("XLMRobertaForMaskedLM", {**TEXT, "tie_word_embeddings": False, "pad_token_id": 0, "hidden_act": "relu"}, (2, 7), False),
    "camembert.token-classification.one-label": ("CamembertForTokenClassification", {**TEXT, "num_labels": 1}, (1, 7), False),
    "distilbert.question-answering.sinusoids": ("DistilBertForQuestionAnswering", {**DISTIL, "sinusoidal_pos_embds": True, "activation": "relu"}, (2, 9), False),
    "distilbert.fill-mask.untied-pruned": ("DistilBertForMaskedLM", {**DISTIL, "tie_word_embeddings": False, "pruned_heads": {1: [2]}}, (2, 9), False),
    "distilbert.multiple-choice.aliases": ("DistilBertForMultipleChoice", dict(vocab_size=40, hidden_size=20, num_hidden_layers=1, num_attention_heads=5, hidden_dim=19, max_position_embeddings=20), (1, 2, 5), False),
    "vit.image-classification.oblong": ("ViTForImageClassification", VIT, (3, 1, 12, 20), None),
    "vit.image-feature-extraction.remainder": ("ViTModel", {**VIT, "image_size": 22, "patch_size": 5, "qkv_bias": True, "hidden_act": "gelu_pytorch_tanh"}, (1, 1, 22, 22), None),
    "deit.image-classification.oblong-with-teacher": ("DeiTForImageClassificationWithTeacher", {**VIT, "pruned_heads": {1: [0]}}, (2, 1, 12, 20), None),
    "resnet.image-classification.basic": ("ResNetForImageClassification", {**RESNET, "layer_type": "basic", "hidden_act": "silu", "downsample_in_first_stage": True}, (2, 2, 33, 47), None),
    "resnet.image-feature-extraction.bottleneck": ("ResNetModel", {**RESNET, "downsample_in_bottleneck": True, "hidden_act": "gelu"}, (1, 2, 45, 31), None),
    "convnext.image-classification.no-scale": ("ConvNextForImageClassification", {**CONVNEXT, "layer_scale_init_value": 0.0, "hidden_act": "silu", "drop_path_rate": 0.3, "patch_size": 2, "num_channels": 1, "layer_norm_eps": 1e-2}, (2, 1, 31, 23), None),
    "detr.object-detection.learned": ("DetrForObjectDetection", {**DETR, "backbone_config": {**DETR_RESNET, "layer_type": "basic", "out_features": ["stage3"]}}, (2, 3, 64, 96), None),
    "table-transformer.object-detection.bottleneck": ("TableTransformerForObjectDetection", {**DETR, "backbone_config": {**DETR_RESNET, "downsample_in_first_stage": True, "out_features": ["stage1", "stage2"]}}, (2, 3, 96, 64), None),
    "convnext.image-feature-extraction.same-width": ("ConvNextModel", dict(hidden_sizes=[4, 4], depths=[1, 1], num_stages=2, image_size=32, patch_size=3, hidden_act="relu"), (1, 3, 31, 20), None),
}


def redraw(model, generator):
    """No zero bias, no unit scale: every parameter shows in the output."""
    for name, parameter in model.named_parameters():
        scale = parameter.dim() <= 1 and name.endswith(("weight", "layer_scale_parameter"))
        deviation = 0.1 if parameter.dim() <= 1 else max(0.05, parameter[0].numel() ** -0.5)
        with torch.no_grad():
            parameter.copy_(float(scale) + deviation * torch.randn(parameter.shape, generator=generator))
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(0.1 * torch.randn(buffer.shape, generator=generator))
        if name.endswith("running_var"):
            buffer.copy_(1 + 0.2 * torch.rand(buffer.shape, generator=generator))


def inputs_of(shape, types, vocabulary, padding, generator):
    if types is None:
        return {"pixel_values": torch.rand(shape, generator=generator) * 2 - 1}
    ids = torch.randint(5, vocabulary, shape, generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, ..., -2:] = 0
    ids[mask == 0] = padding
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs["token_type_ids"] = (torch.arange(shape[-1]) >= shape[-1] // 2).long().expand(shape).contiguous()
    return inputs


def describe(tensors):
    return {name: {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape)} for name, t in tensors.items()}


def make_case(folder, class_name, options, shape, types):
    generator = torch.Generator().manual_seed(sum(map(ord, folder.name)))
    model_class = getattr(tf, class_name)
    made = model_class._from_config(model_class.config_class(**options), attn_implementation="eager") if types is not None else model_class(model_class.config_class(**options))
    redraw(made, generator)
    made.tie_weights()
    made.save_pretrained(folder)
    model = model_class.from_pretrained(folder, **({} if folder.name[:3] in ("res", "con") else {"attn_implementation": "eager"})).eval()
    inputs = inputs_of(shape, types, model.config.to_dict().get("vocab_size", 0), getattr(model.config, "pad_token_id", None) or 0, generator)
    with torch.no_grad():
        result = model(**inputs)
    outputs = {k: v.contiguous() for k, v in result.items() if k not in ("cls_logits", "distillation_logits", "pooler_output")}
    save_file(inputs, folder / "inputs.safetensors")
    save_file(outputs, folder / "outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    case = {"name": folder.name, "model_type": model.config.model_type, "task": folder.name.split(".")[1],
            "architecture": class_name, "inputs": describe(inputs), "outputs": describe(outputs),
            "atol": 2e-4, "rtol": 2e-4, "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def make_activations(file):
    x = torch.tensor([-12.0, -4.5, -2.0, -1.0, -0.5, -0.01, 0.0, 0.01, 0.3, 0.9, 1.7, 3.2, 5.9, 7.5, 11.0])
    learned = {"prelu", "xielu"}
    values = {kind: tf.activations.ACT2FN[kind](x).tolist() for kind in sorted(tf.activations.ACT2CLS) if kind not in learned}
    file.write_text(json.dumps({"x": x.tolist(), "activations": values}, indent=1) + "\n")


def main():
    out, only = pathlib.Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) > 2 else "")
    for name, (class_name, options, shape, types) in CASES.items():
        if only in name:
            make_case(out / "option_cases" / name, class_name, options, shape, types)
            print("made", name, flush=True)
    make_activations(out / "activations.json")


if __name__ == "__main__":
    main()
