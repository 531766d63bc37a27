"""Hugging Face ``config.json`` files, read as :class:`~simulator.specs.model.ModelSpec`.

Configs share a core of keys and differ in the rest: where the language model is nested, what the
number of experts is called, which biases exist without being mentioned. A config that describes a
part which cannot be priced is refused rather than priced without it. Ignored are keys without
influence on cost: initialisation, tokens, rotary embedding, dropout.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from simulator.errors import ScenarioError
from simulator.specs.checkpoint_precision import native_precision, quantises_attention
from simulator.specs.config_experts import count_expert_layers, experts_of_a_layer
from simulator.specs.config_reader import ConfigReader
from simulator.specs.model import GroupedQueryAttention, LatentAttention, ModelSpec

_MOST_LAYERS = 10_000

_NESTED_KEYS = ("text_config", "llm_config", "language_config")
"""Where multimodal configs keep their language model."""

_UNPRICED_KEYS = {
    "linear_num_value_heads": "linear attention",
    "linear_attn_config": "linear attention",
    "full_attention_interval": "linear attention",
    "hybrid_override_pattern": "Mamba layers",
    "layers_block_type": "Mamba layers",
    "attn_layer_period": "Mamba layers",
    "mamba_d_state": "Mamba layers",
    "ssm_state_size": "Mamba layers",
    "state_size": "Mamba layers",
    "conv_L_cache": "convolution layers",
    "block_configs": "layers that differ in shape",
    "hybrid_layer_pattern": "layers that differ in shape",
    "global_head_dim": "layers that differ in shape",
    "num_kv_shared_layers": "layers that share a cache",
    "index_topk": "sparse attention",
    "sparse_attention_config": "sparse attention",
    "compress_ratios": "compressed caches",
    "attention_chunk_size": "chunked attention",
    "enable_moe_block": "dense and expert networks in one layer",
    "is_encoder_decoder": "an encoder",
    "encoder_layers": "an encoder",
    "num_decoder_layers": "an encoder",
    "draft_vocab_size": "the head of a drafter (see speculation.drafter)",
}

_UNPRICED_TYPES = frozenset(
    {
        "arcee",
        "bert",
        "bloom",
        "falcon",
        "gpt2",
        "gpt_bigcode",
        "gpt_neo",
        "gpt_neox",
        "gptj",
        "mpt",
        "nemotron",
        "opt",
        "persimmon",
        "phi",
        "rwkv",
        "starcoder2",
        "t5",
    }
)
"""Kinds whose feed-forward network is no gated one, or which are no decoders."""

_DENSE_WIDTHS = ("dense_intermediate_size", "intermediate_size_mlp")
_MTP_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")


def model_from_config(config: Mapping[str, Any], name: str) -> ModelSpec:
    """Read the contents of a ``config.json``.

    Parameters
    ----------
    config
        The parsed file; ``llama``, ``qwen2``, ``qwen3``, ``mixtral``, ``deepseek_v3``,
        ``kimi_k2``, ``gpt_oss`` and whatever describes itself by the same keys.
    name
        What the model is called in results and errors.

    Raises
    ------
    ScenarioError
        If a key is missing, wrong, or describes what cannot be priced.
    """
    reader = _open(config, name)
    _refuse_unpriced(reader)
    num_layers = reader.size("num_hidden_layers")
    if num_layers > _MOST_LAYERS:
        raise reader.refusal(f"num_hidden_layers must be at most {_MOST_LAYERS}, got {num_layers}")
    experts = experts_of_a_layer(reader)
    num_expert_layers = 0 if experts is None else count_expert_layers(reader, num_layers)
    num_dense_layers = num_layers - num_expert_layers
    try:
        return ModelSpec(
            name=name,
            num_layers=num_layers,
            hidden_size=reader.size("hidden_size"),
            vocab_size=reader.size("vocab_size"),
            ties_embeddings=reader.flag("tie_word_embeddings", _kind(reader).startswith("gemma")),
            attention=_attention(reader, num_layers),
            dense_intermediate=_dense_width(reader) if num_dense_layers else 0,
            num_dense_layers=num_dense_layers,
            experts=experts if num_expert_layers else None,
            num_expert_layers=num_expert_layers,
            num_mtp_layers=next((reader.count(key) for key in _MTP_LAYERS if reader.has(key)), 0),
            quantises_attention=quantises_attention(reader),
            native_precision=native_precision(reader),
            max_position_tokens=reader.size("max_position_embeddings"),
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ScenarioError(f"model {name}: {place} {first['msg']}".replace("  ", " ")) from error


def _open(config: Mapping[str, Any], name: str) -> ConfigReader:
    """A reader that sees the language model first and the whole config behind it."""
    if not isinstance(config, Mapping):
        raise ScenarioError(
            f"model {name}: a config.json must hold one object, got {type(config).__name__}"
        )
    outer = ConfigReader(name, config)
    for key in _NESTED_KEYS:
        inner = outer.mapping(key)
        if inner is not None:
            return ConfigReader(name, inner, config)
    return outer


def _kind(reader: ConfigReader) -> str:
    return reader.text("model_type")


def _refuse_unpriced(reader: ConfigReader) -> None:
    kind = _kind(reader)
    if kind in _UNPRICED_TYPES:
        raise reader.refusal(
            f"model_type {kind} cannot be priced; supported are decoders with gated feed-forward "
            "networks, such as llama, qwen3_moe, deepseek_v3, gpt_oss"
        )
    for key, part in _UNPRICED_KEYS.items():
        if reader.value(key):
            raise reader.refusal(
                f"{key} describes {part}, which cannot be priced yet; supported are decoders with "
                "full, sliding-window or latent attention and dense or expert layers"
            )
    # MiniMax-M2 lists a 1 for each layer: all of them attend in full.
    if 0 in (reader.items("attn_type_list") or ()):
        raise reader.refusal(
            "attn_type_list has 0, linear attention, which cannot be priced yet; supported is 1"
        )


def _attention(reader: ConfigReader, num_layers: int) -> GroupedQueryAttention | LatentAttention:
    num_heads = reader.size("num_attention_heads")
    if reader.has("kv_lora_rank"):
        return LatentAttention(
            num_heads=num_heads,
            q_lora_rank=reader.optional_size("q_lora_rank"),
            kv_lora_rank=reader.size("kv_lora_rank"),
            qk_nope_head_dim=reader.size("qk_nope_head_dim"),
            qk_rope_head_dim=reader.size("qk_rope_head_dim"),
            v_head_dim=reader.size("v_head_dim"),
        )
    kind, hidden_size = _kind(reader), reader.size("hidden_size")
    head_dim = reader.optional_size("head_dim")
    if head_dim is None:
        if hidden_size % num_heads:
            raise reader.refusal(
                f"head_dim is missing, and hidden_size {hidden_size} is no multiple of "
                f"num_attention_heads {num_heads}"
            )
        head_dim = hidden_size // num_heads
    num_kv_heads = reader.optional_size("num_key_value_heads") or num_heads
    if num_heads % num_kv_heads:
        raise reader.refusal(
            f"num_key_value_heads {num_kv_heads} must divide num_attention_heads {num_heads}"
        )
    window_tokens, windowed_layers = _window(reader, num_layers)
    # Qwen2 adds a bias to queries, keys and values that its configs do not mention.
    return GroupedQueryAttention(
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        has_bias=reader.flag("attention_bias", kind.startswith("qwen2")),
        has_qk_norm=reader.flag("use_qk_norm", kind.startswith(("qwen3", "gemma3"))),
        norm_spans_heads=reader.text("qk_norm_type") == "per_layer",
        window_tokens=window_tokens if windowed_layers else None,
        windowed_layers=windowed_layers,
    )


def _window(reader: ConfigReader, num_layers: int) -> tuple[int | None, int]:
    """Window [tokens], and how many layers it holds for."""
    kind = _kind(reader)
    layer_types = reader.items("layer_types", num_layers)
    for layer_type in layer_types or ():
        if layer_type not in ("full_attention", "sliding_attention"):
            raise reader.refusal(
                f"layer_types has {layer_type!r}, which cannot be priced yet; supported are "
                "full_attention and sliding_attention"
            )
    # The switch rules, not the number: MiMo and Qwen2.5 give a window and turn it off.
    is_used = reader.flag("use_sliding_window", not kind.startswith(("qwen", "mimo")))
    if layer_types is not None:
        windowed_layers = layer_types.count("sliding_attention")
        if not is_used or not windowed_layers:
            return None, 0
        return reader.size("sliding_window"), windowed_layers
    window_tokens = reader.optional_size("sliding_window") if is_used else None
    if window_tokens is None:
        return None, 0
    if reader.has("max_window_layers"):
        windowed_layers = max(num_layers - reader.count("max_window_layers"), 0)
    elif reader.has("sliding_window_pattern"):
        windowed_layers = num_layers - num_layers // reader.size("sliding_window_pattern")
    elif kind.startswith(("gpt_oss", "gemma2")):
        windowed_layers = (num_layers + 1) // 2
    else:
        windowed_layers = num_layers
    return (window_tokens, windowed_layers) if windowed_layers else (None, 0)


def _dense_width(reader: ConfigReader) -> int:
    return reader.optional_size(*_DENSE_WIDTHS) or reader.size("intermediate_size")
