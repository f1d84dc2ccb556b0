#!/usr/bin/env python3
"""Golden cases of encoders with a decoder, with options that few checkpoints have: tests/data/pair_cases, and
tests/data/option_cases for their heads that are one graph.

    make_pair_cases.py OUT [NAME]

As make_option_cases.py. The decoder's tokens come all at once; the tests give them one by one.
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from make_option_cases import describe, redraw
from safetensors.torch import save_file

BART = dict(vocab_size=40, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=4, encoder_ffn_dim=19, decoder_ffn_dim=23, max_position_embeddings=14)
T5 = dict(vocab_size=40, d_model=16, d_kv=6, d_ff=19, num_layers=1, num_decoder_layers=2, num_heads=2, n_positions=18,
          decoder_start_token_id=0)
WHISPER = dict(vocab_size=40, num_mel_bins=6, d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2,
               decoder_attention_heads=4, encoder_ffn_dim=19, decoder_ffn_dim=23, max_source_positions=10,
               max_target_positions=9, decoder_start_token_id=1, pad_token_id=0, bos_token_id=1, eos_token_id=2,
               begin_suppress_tokens=None, suppress_tokens=None)
VIT = dict(hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=19, image_size=12, patch_size=4)
TROCR = dict(vocab_size=40, d_model=16, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=19,
             max_position_embeddings=10)
GPT2 = dict(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=10, bos_token_id=1, eos_token_id=2)
BERT = dict(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=4, intermediate_size=19,
            max_position_embeddings=12)


def draw(high, *shape, seed=7):
    return torch.randint(5, high, shape, generator=torch.Generator().manual_seed(seed))


def text(steps=6, length=8, vocabulary=40, padding=None):
    """Two texts, the second one shorter; and what the decoder has said so far, unless it reads the text itself."""
    ids, mask = draw(vocabulary, 2, length), torch.ones(2, length, dtype=torch.int64)
    mask[1, -3:] = 0
    if padding is not None:
        ids[mask == 0] = padding
    return {"input_ids": ids, "attention_mask": mask,
            **({"decoder_input_ids": draw(vocabulary, 2, steps, seed=9)} if steps else {})}


def ended(padding=None):
    """Texts with two ends each, the second of them the one that counts."""
    inputs = text(steps=0, padding=padding)
    for row, last in ((0, 7), (1, 4)):
        inputs["input_ids"][row, 2] = inputs["input_ids"][row, last] = 2
    return inputs


def sound(steps=6):
    features = torch.randn(2, 6, 20, generator=torch.Generator().manual_seed(3))
    return {"input_features": features, **({"decoder_input_ids": draw(40, 2, steps)} if steps else {})}


def picture(side=12):
    return {"pixel_values": torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(11)) * 2 - 1,
            "decoder_input_ids": draw(40, 2, 6)}


def image_to_text(encoder, decoder):
    return tf.VisionEncoderDecoderConfig(
        encoder=encoder.to_dict(), decoder={**decoder.to_dict(), "is_decoder": True, "add_cross_attention": True},
        decoder_start_token_id=2, pad_token_id=1)


S2S, VED = "ForConditionalGeneration", "VisionEncoderDecoderModel"
# name -> class, configuration, inputs
PAIRS = {
    "bart.text2text-generation.scaled": ("Bart" + S2S, lambda: tf.BartConfig(**BART, scale_embedding=True, activation_function="relu"), text),
    "mbart.text2text-generation.plain": ("MBart" + S2S, lambda: tf.MBartConfig(**BART, activation_function="gelu_new"), text),
    "marian.text2text-generation.untied": ("MarianMTModel", lambda: tf.MarianConfig(**BART, share_encoder_decoder_embeddings=False, decoder_vocab_size=40, tie_word_embeddings=False, pad_token_id=39, decoder_start_token_id=39), text),
    "pegasus.text2text-generation.scaled": ("Pegasus" + S2S, lambda: tf.PegasusConfig(**BART, scale_embedding=True), text),
    "m2m_100.text2text-generation.padded": ("M2M100" + S2S, lambda: tf.M2M100Config(**BART, scale_embedding=False), lambda: text(padding=1)),
    "blenderbot.text2text-generation": ("Blenderbot" + S2S, lambda: tf.BlenderbotConfig(**BART, scale_embedding=True), text),
    "blenderbot-small.text2text-generation": ("BlenderbotSmall" + S2S, lambda: tf.BlenderbotSmallConfig(**BART), text),
    "t5.text2text-generation.gated": ("T5" + S2S, lambda: tf.T5Config(**T5, feed_forward_proj="gated-silu", tie_word_embeddings=False, relative_attention_num_buckets=8, relative_attention_max_distance=6), lambda: text(steps=12, length=16)),
    "mt5.text2text-generation": ("MT5" + S2S, lambda: tf.MT5Config(**T5), text),
    "whisper.automatic-speech-recognition.relu": ("Whisper" + S2S, lambda: tf.WhisperConfig(**WHISPER, activation_function="relu", tie_word_embeddings=False), sound),
    "vision-encoder-decoder.image-to-text.sinusoids": (VED, lambda: image_to_text(tf.DeiTConfig(**VIT), tf.TrOCRConfig(**TROCR, cross_attention_hidden_size=12, use_learned_position_embeddings=False, layernorm_embedding=False, scale_embedding=True)), picture),
    "vision-encoder-decoder.image-to-text.mbart": (VED, lambda: image_to_text(tf.ViTConfig(**VIT), tf.MBartConfig(**TROCR)), picture),
    "vision-encoder-decoder.image-to-text.gpt2": (VED, lambda: image_to_text(tf.ViTConfig(**VIT), tf.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True, n_inner=19)), picture),
    "vision-encoder-decoder.image-to-text.bert": (VED, lambda: image_to_text(tf.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 4], window_size=4), tf.BertConfig(**BERT)), lambda: picture(16)),
    "vision-encoder-decoder.image-to-text.roberta": (VED, lambda: image_to_text(tf.ViTConfig(**VIT), tf.RobertaConfig(**BERT, type_vocab_size=1)), picture),
}
HEADS = {
    "bart.text-classification.start": ("BartForSequenceClassification", lambda: tf.BartConfig(**BART, num_labels=5, decoder_start_token_id=7), ended),
    "mbart.text-classification.padded": ("MBartForSequenceClassification", lambda: tf.MBartConfig(**BART, num_labels=4), lambda: ended(padding=1)),
    "bart.question-answering.plain": ("BartForQuestionAnswering", lambda: tf.BartConfig(**BART, num_labels=2), ended),
    "whisper.audio-classification.weighted": ("WhisperForAudioClassification", lambda: tf.WhisperConfig(**WHISPER, num_labels=5, classifier_proj_size=9, use_weighted_layer_sum=True), lambda: sound(steps=0)),
}
KEPT = ("logits", "start_logits", "end_logits")


def make_case(folder, class_name, config, inputs):
    made = getattr(tf, class_name)(config())
    redraw(made, torch.Generator().manual_seed(sum(map(ord, folder.name))))
    for name, buffer in made.named_buffers():
        if name.endswith("final_logits_bias"):
            buffer.copy_(0.3 * torch.randn(buffer.shape, generator=torch.Generator().manual_seed(1)))
    made.tie_weights()
    made.save_pretrained(folder)
    model = getattr(tf, class_name).from_pretrained(folder, attn_implementation="eager").eval()
    inputs = inputs()
    with torch.no_grad():
        result = model(**inputs)
    outputs = {k: v.contiguous() for k, v in result.items() if k in KEPT}
    save_file(inputs, folder / "inputs.safetensors")
    save_file(outputs, folder / "outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    case = {"name": folder.name, "model_type": model.config.model_type, "task": folder.name.split(".")[1],
            "architecture": class_name, "inputs": describe(inputs), "outputs": describe(outputs),
            "atol": 2e-4, "rtol": 2e-4, "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    out, only = pathlib.Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) > 2 else "")
    for group, cases in (("pair_cases", PAIRS), ("option_cases", HEADS)):
        for name, case in cases.items():
            if only in name:
                make_case(out / group / name, *case)
                print("made", name, flush=True)


if __name__ == "__main__":
    main()
