"""Configs as publishers write them: what is read, what a family leaves unsaid."""

import pytest

from simulator.specs.huggingface import model_from_config
from simulator.specs.model import Experts

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1_000,
    "max_position_embeddings": 4_096,
    "tie_word_embeddings": False,
}
QWEN3_MOE = {
    **LLAMA,
    "model_type": "qwen3_moe",
    "num_experts": 16,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 32,
}
DEEPSEEK = {
    **LLAMA,
    "model_type": "deepseek_v3",
    "num_key_value_heads": 8,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 32,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 12,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
}


def read(base, **changes):
    return model_from_config({**base, **changes}, "m")


def test_a_llama():
    model = read(LLAMA)
    assert model.name == "m"
    assert (model.num_layers, model.hidden_size, model.vocab_size) == (6, 64, 1_000)
    assert (model.num_dense_layers, model.dense_intermediate, model.experts) == (6, 96, None)
    assert model.attention.kind == "grouped_query"
    assert (model.attention.num_heads, model.attention.num_kv_heads) == (8, 2)
    assert model.max_position_tokens == 4_096
    assert model.native_precision == "bf16"


@pytest.mark.parametrize(
    ("head_dim", "width"), [({}, 8), ({"head_dim": None}, 8), ({"head_dim": 32}, 32)]
)
def test_head_width_is_hidden_over_heads_unless_given(head_dim, width):
    assert read(LLAMA, **head_dim).attention.head_dim == width


def test_without_kv_heads_every_head_has_its_own():
    assert read(LLAMA, num_key_value_heads=None).attention.num_kv_heads == 8


@pytest.mark.parametrize(
    ("changes", "has_bias", "has_qk_norm"),
    [
        ({"model_type": "llama"}, False, False),
        ({"model_type": "llama", "attention_bias": True}, True, False),
        ({"model_type": "qwen2"}, True, False),
        ({"model_type": "qwen3"}, False, True),
        ({"model_type": "qwen3_vl_text"}, False, True),
        ({"model_type": "glm4", "use_qk_norm": True}, False, True),
        ({"model_type": "something_new"}, False, False),
    ],
)
def test_biases_and_head_norms_that_a_family_implies(changes, has_bias, has_qk_norm):
    attention = read(LLAMA, **changes).attention
    assert (attention.has_bias, attention.has_qk_norm) == (has_bias, has_qk_norm)


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"sliding_window": None}, (None, 0)),
        ({"model_type": "mistral", "sliding_window": 128}, (128, 6)),
        ({"model_type": "mimo", "sliding_window": 128, "use_sliding_window": False}, (None, 0)),
        ({"model_type": "qwen2", "sliding_window": 128, "max_window_layers": 4}, (None, 0)),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 128,
                "use_sliding_window": True,
                "max_window_layers": 4,
            },
            (128, 2),
        ),
        ({"model_type": "gpt_oss", "sliding_window": 128}, (128, 3)),
        ({"model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 6}, (64, 5)),
        (
            {
                "sliding_window": 128,
                "layer_types": ["sliding_attention"] * 2 + ["full_attention"] * 4,
            },
            (128, 2),
        ),
        ({"sliding_window": 128, "layer_types": ["full_attention"] * 6}, (None, 0)),
    ],
)
def test_which_layers_have_a_window(changes, window):
    attention = read(LLAMA, **changes).attention
    assert (attention.window_tokens, attention.windowed_layers) == window


def test_qwen_experts_replace_the_dense_network():
    model = read(QWEN3_MOE, decoder_sparse_step=1, mlp_only_layers=[])
    assert model.experts == Experts(num_experts=16, experts_per_token=4, intermediate=32)
    assert (model.num_expert_layers, model.num_dense_layers, model.dense_intermediate) == (6, 0, 0)


@pytest.mark.parametrize(
    ("changes", "expert_layers"),
    [
        ({"decoder_sparse_step": 2}, 3),
        ({"mlp_only_layers": [0, 5]}, 4),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, 2),
        ({"first_k_dense_replace": 2}, 4),
        ({"first_k_dense_replace": 2, "moe_layer_freq": 2}, 2),
        ({"moe_layer_freq": [0, 0, 0, 1, 1, 1]}, 3),
        ({"mlp_layer_types": ["dense"] + ["sparse"] * 5}, 5),
        ({"first_k_dense_replace": 6}, 0),
    ],
)
def test_which_layers_have_experts(changes, expert_layers):
    model = read(QWEN3_MOE, **changes)
    assert model.num_expert_layers == expert_layers
    assert model.num_dense_layers == 6 - expert_layers
    assert model.dense_intermediate == 96
    assert (model.experts is None) == (expert_layers == 0)


def test_mixtral_gives_the_width_of_an_expert_under_the_dense_name():
    model = read(LLAMA, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    assert model.experts == Experts(num_experts=8, experts_per_token=2, intermediate=96)


def test_gpt_oss_may_name_active_experts_twice():
    names = {"num_local_experts": 8, "num_experts_per_tok": 2, "experts_per_token": 2}
    assert read(LLAMA, model_type="gpt_oss", **names).experts.experts_per_token == 2


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({}, (0, 0)),
        ({"shared_expert_intermediate_size": 0}, (0, 0)),
        ({"shared_expert_intermediate_size": 48}, (1, 48)),
        ({"n_shared_experts": 0}, (0, 0)),
        ({"n_shared_experts": 2}, (2, 32)),
        ({"n_shared_experts": 1, "moe_shared_expert_intermediate_size": 64}, (1, 64)),
    ],
)
def test_shared_experts(changes, shared):
    experts = read(QWEN3_MOE, **changes).experts
    assert (experts.num_shared_experts, experts.shared_intermediate) == shared


def test_deepseek():
    model = read(DEEPSEEK, num_nextn_predict_layers=1)
    assert model.attention.kind == "latent"
    assert model.attention.q_lora_rank == 24
    assert model.kv_bytes_per_token("bf16") == 6 * (16 + 4) * 2
    assert (model.num_dense_layers, model.num_expert_layers, model.num_mtp_layers) == (2, 4, 1)
    assert model.experts.num_shared_experts == 2


def test_deepseek_v2_lite_does_not_compress_its_queries():
    assert read(DEEPSEEK, q_lora_rank=None).attention.q_lora_rank is None


@pytest.mark.parametrize("key", ["text_config", "llm_config", "language_config"])
def test_a_nested_language_model_equals_a_bare_one(key):
    bare = dict(DEEPSEEK)
    nested = {"model_type": "kimi_k25", key: bare, "vision_config": {"hidden_size": 3}}
    assert model_from_config(nested, "m") == model_from_config(bare, "m")


def test_outer_keys_hold_where_the_nested_model_says_nothing():
    inner = {key: value for key, value in LLAMA.items() if key != "tie_word_embeddings"}
    outer = {
        "text_config": inner,
        "tie_word_embeddings": True,
        "hidden_size": 7,
        "quantization_config": {"quant_method": "fp8"},
    }
    model = model_from_config(outer, "m")
    assert model.ties_embeddings
    assert model.hidden_size == 64
    assert model.native_precision == "fp8"


@pytest.mark.parametrize(("kind", "ties"), [("llama", False), ("gemma2", True)])
def test_whether_embeddings_are_tied_when_nothing_is_said(kind, ties):
    assert read(LLAMA, model_type=kind, tie_word_embeddings=None).ties_embeddings is ties


def compressed(**weights):
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": weights}},
    }


@pytest.mark.parametrize(
    ("quantization", "precision"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        (compressed(num_bits=4, type="int", group_size=32), "fp4"),
        (compressed(num_bits=8, type="float"), "fp8"),
        ({}, "bf16"),
    ],
)
def test_precision_of_the_published_weights(quantization, precision):
    assert read(LLAMA, quantization_config=quantization).native_precision == precision


def test_keys_without_influence_on_cost_are_ignored():
    extra = {
        "rope_theta": 1e6,
        "hidden_act": "silu",
        "attn_type_list": [1] * 6,
        "anything": object(),
    }
    assert read(LLAMA, **extra) == read(LLAMA)
