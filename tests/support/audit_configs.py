"""Small configurations of model architectures of the transformers library, weights at random."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_DECODER = {**_TEXT, "num_key_value_heads": 2, "head_dim": 8}
_GPT = {
    "vocab_size": 99,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
_T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "eos_token_id": 98,
    "forced_eos_token_id": None,
}
_WHISPER = {
    **_BART,
    "num_mel_bins": 16,
    "max_source_positions": 30,
    "max_target_positions": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}

#: By name: class, model_type, and the configuration.
CONFIGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", "gpt2", _GPT),
    "llama": ("LlamaForCausalLM", "llama", _DECODER),
    "mistral": ("MistralForCausalLM", "mistral", _DECODER),
    "qwen2": ("Qwen2ForCausalLM", "qwen2", _DECODER),
    "qwen3": ("Qwen3ForCausalLM", "qwen3", _DECODER),
    "gemma2": ("Gemma2ForCausalLM", "gemma2", {**_DECODER, "query_pre_attn_scalar": 8}),
    "phi3": ("Phi3ForCausalLM", "phi3", _DECODER),
    "gpt_neox": ("GPTNeoXForCausalLM", "gpt_neox", _TEXT),
    "opt": (
        "OPTForCausalLM",
        "opt",
        {**_TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32},
    ),
    "mixtral": (
        "MixtralForCausalLM",
        "mixtral",
        {**_DECODER, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "bert": ("BertForMaskedLM", "bert", _TEXT),
    "roberta": ("RobertaForSequenceClassification", "roberta", _TEXT),
    "distilbert": (
        "DistilBertModel",
        "distilbert",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "deberta-v2": ("DebertaV2Model", "deberta-v2", _TEXT),
    "t5": ("T5ForConditionalGeneration", "t5", _T5),
    "bart": ("BartForConditionalGeneration", "bart", _BART),
    "whisper": ("WhisperForConditionalGeneration", "whisper", _WHISPER),
    "vit": ("ViTForImageClassification", "vit", _VISION),
    "clip": (
        "CLIPVisionModel",
        "clip_vision_model",
        _VISION,
    ),
    "convnext": (
        "ConvNextForImageClassification",
        "convnext",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "image_size": 32},
    ),
}

#: Those that decode, with a cache.
GENERATE = (
    "gpt2",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma2",
    "phi3",
    "gpt_neox",
    "opt",
    "mixtral",
    "t5",
    "bart",
)
