"""Configs that are wrong or cannot be priced: one sentence that names the key, no traceback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ScenarioError
from simulator.specs.huggingface import model_from_config
from simulator.specs.model import ModelSpec
from tests.specs.test_huggingface import DEEPSEEK, LLAMA, QWEN3_MOE, compressed

REQUIRED = {
    "llama": (
        LLAMA,
        {
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "vocab_size",
            "max_position_embeddings",
        },
    ),
    "qwen3_moe": (QWEN3_MOE, {"num_experts_per_tok"}),
    "deepseek_v3": (
        DEEPSEEK,
        {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_experts_per_tok"},
    ),
}
CASES = [(base, key) for base, keys in REQUIRED.values() for key in sorted(keys)]


def refusal(config):
    with pytest.raises(ScenarioError) as caught:
        model_from_config(config, "m")
    message = str(caught.value)
    assert message.startswith("model m: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("base", "key"), CASES)
def test_a_missing_key_is_named(base, key):
    message = refusal({name: value for name, value in base.items() if name != key})
    assert key in message
    assert "missing" in message


@pytest.mark.parametrize(
    "value", [0, -3, 2.5, 64.0, float("nan"), float("inf"), "64", True, [64], {}]
)
@pytest.mark.parametrize(("base", "key"), CASES)
def test_a_value_that_is_no_positive_whole_number_is_refused(base, key, value):
    message = refusal({**base, key: value})
    assert f"{key} must be a whole number from 1 to" in message
    assert f"got {value!r}" in message


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"linear_num_value_heads": 32}, "linear_num_value_heads"),
        ({"full_attention_interval": 4}, "full_attention_interval"),
        ({"attn_type_list": [0, 0, 1, 0, 0, 1]}, "attn_type_list"),
        ({"layer_types": ["linear_attention"] * 6}, "linear_attention"),
        ({"hybrid_override_pattern": "MEM*"}, "hybrid_override_pattern"),
        ({"ssm_state_size": 128}, "ssm_state_size"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"model_type": "t5"}, "t5"),
        ({"model_type": "gpt2"}, "gpt2"),
        ({"block_configs": [{}]}, "block_configs"),
        ({"index_topk": 2_048}, "index_topk"),
        ({"sparse_attention_config": {"k": 1}}, "sparse_attention_config"),
        ({"compress_ratios": [0, 4]}, "compress_ratios"),
        ({"attention_chunk_size": 8_192}, "attention_chunk_size"),
        ({"enable_moe_block": True}, "enable_moe_block"),
        ({"draft_vocab_size": 32_000}, "draft_vocab_size"),
        ({"my_expert_count": 8}, "my_expert_count"),
        ({"quantization_config": {"quant_method": "awq"}}, "quant_method awq"),
        ({"quantization_config": {"bits": 4}}, "quant_method nothing"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "INT8"}}, "INT8"),
        ({"quantization_config": compressed(num_bits=8, type="int")}, "num_bits 8"),
    ],
)
def test_what_cannot_be_priced_is_refused_by_its_key(changes, key):
    message = refusal({**LLAMA, **changes})
    assert key in message
    assert "cannot be priced" in message or "suggests experts" in message


def test_what_cannot_be_priced_is_also_found_inside_a_nested_model():
    inner = {**LLAMA, "linear_num_value_heads": 32}
    assert "linear_num_value_heads" in refusal({"text_config": inner})


@pytest.mark.parametrize(
    ("base", "changes", "told"),
    [
        (LLAMA, {"num_attention_heads": 7, "num_key_value_heads": 7}, "head_dim is missing"),
        (LLAMA, {"num_key_value_heads": 3}, "num_key_value_heads 3 must divide"),
        (LLAMA, {"num_hidden_layers": 10_001}, "num_hidden_layers must be at most 10000"),
        (LLAMA, {"vocab_size": 10**12}, "vocab_size must be a whole number"),
        (LLAMA, {"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false"),
        (LLAMA, {"model_type": 3}, "model_type must be a string"),
        (LLAMA, {"text_config": "inner"}, "text_config must be an object"),
        (LLAMA, {"quantization_config": [1]}, "quantization_config must be an object"),
        (LLAMA, {"layer_types": ["full_attention"]}, "layer_types has 1 entries"),
        (LLAMA, {"layer_types": "full_attention"}, "layer_types must be a list"),
        (
            LLAMA,
            {"layer_types": ["sliding_attention"] * 6},
            "sliding_window is missing",
        ),
        (LLAMA, {"sliding_window": -1}, "sliding_window must be a whole number"),
        (QWEN3_MOE, {"num_experts_per_tok": 17}, "num_experts_per_tok must be at most"),
        (QWEN3_MOE, {"experts_per_token": 2}, "mean the same thing but differ"),
        (QWEN3_MOE, {"mlp_only_layers": ["x"]}, "mlp_only_layers must be a whole number"),
        (QWEN3_MOE, {"moe_layer_freq": [1, 0]}, "moe_layer_freq has 2 entries"),
        (QWEN3_MOE, {"mlp_layer_types": ["odd"] * 6}, "mlp_layer_types must say"),
        (QWEN3_MOE, {"n_shared_experts": -1}, "n_shared_experts must be a whole number from 0"),
        (
            LLAMA,
            {"quantization_config": {"quant_method": "compressed-tensors"}},
            "config_groups must give",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(base, changes, told):
    assert told in refusal({**base, **changes})


@pytest.mark.parametrize("config", [[], "llama", None, 3])
def test_a_config_that_is_no_object_is_refused(config):
    assert "must hold one object" in refusal(config)


def test_a_model_without_a_name_is_refused():
    with pytest.raises(ScenarioError, match="name String should have at least 1 character"):
        model_from_config(LLAMA, "")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
KEYS = sorted(
    {*LLAMA, *QWEN3_MOE, *DEEPSEEK}
    | {"layer_types", "sliding_window", "mlp_only_layers", "decoder_sparse_step", "head_dim"}
    | {"quantization_config", "text_config", "num_nextn_predict_layers", "attention_bias"}
)


@given(
    st.sampled_from([LLAMA, QWEN3_MOE, DEEPSEEK]),
    st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, min_size=1, max_size=3),
)
def test_any_json_is_a_model_or_a_refusal(base, changes):
    try:
        model = model_from_config({**base, **changes}, "m")
    except ScenarioError:
        return
    assert isinstance(model, ModelSpec)
