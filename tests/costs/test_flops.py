"""FLOP of passes: against counting one by one, and against rules of thumb."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.costs.flops import (
    attended_pairs,
    backward_flops,
    causal_pairs,
    decode_flops,
    forward_flops,
)
from simulator.data_root import data_root
from simulator.specs.huggingface import model_from_config
from simulator.specs.model import GroupedQueryAttention, LatentAttention, ModelSpec

windows = st.none() | st.integers(1, 60)
lengths = st.lists(st.integers(0, 50), min_size=1, max_size=8)


def shipped(name):
    path = data_root() / "workloads" / "models" / f"{name}.json"
    return model_from_config(json.loads(path.read_text(encoding="utf-8")), name)


MODELS = {name: shipped(name) for name in ("Qwen3-8B", "Qwen3-0.6B", "DeepSeek-V3", "gpt-oss-120b")}
some_model = st.sampled_from(sorted(MODELS))


def small(attention):
    return ModelSpec(
        name="small",
        num_layers=4,
        hidden_size=8,
        vocab_size=16,
        attention=attention,
        dense_intermediate=12,
        num_dense_layers=4,
        max_position_tokens=64,
    )


@given(st.integers(0, 50), st.integers(0, 50), windows)
def test_pairs_are_what_counting_gives(new, prefix, window):
    counted = sum(
        min(prefix + token, prefix + token if window is None else window)
        for token in range(1, new + 1)
    )
    assert attended_pairs(new, prefix, window) == counted


@given(lengths, windows)
def test_pairs_of_a_batch_are_the_sum_over_its_sequences(sequence_lengths, window):
    one_by_one = sum(causal_pairs([length], window) for length in sequence_lengths)
    assert causal_pairs(np.asarray(sequence_lengths), window) == one_by_one


def test_pairs_of_whole_sequences_have_the_closed_form():
    sizes = np.array([1, 10, 32_768])
    assert causal_pairs(sizes) == np.sum(sizes * (sizes + 1) // 2)


@given(st.integers(0, 50), st.integers(0, 50), windows)
def test_a_sequence_in_two_chunks_has_the_pairs_of_the_whole(first, second, window):
    chunks = attended_pairs(first, 0, window) + attended_pairs(second, first, window)
    assert chunks == causal_pairs([first + second], window)


def test_a_dense_model_takes_two_flops_for_each_weight_and_token():
    model = MODELS["Qwen3-8B"]
    vectors = 36 * (2 * 4_096 + 2 * 128) + 4_096
    matrices = model.parameters - model.embedding_parameters - vectors
    assert forward_flops(model, 10, 0, 10) == 2 * 10 * matrices


def test_logits_cost_only_the_tokens_that_need_them():
    model = MODELS["Qwen3-8B"]
    saved = forward_flops(model, 10, 0, 10) - forward_flops(model, 10, 0, 1)
    assert saved == 2 * 9 * 151_936 * 4_096


def test_a_tied_head_costs_what_an_untied_one_does():
    model = MODELS["Qwen3-0.6B"]
    untied = model.model_copy(update={"ties_embeddings": False})
    assert forward_flops(model, 3, 6, 3) == forward_flops(untied, 3, 6, 3)


def test_attention_of_grouped_queries_by_hand():
    # Scores and weighted values: 2 x head width each, for 4 query heads of width 3, in 4 layers.
    model = small(GroupedQueryAttention(num_heads=4, num_kv_heads=2, head_dim=3))
    attention = forward_flops(model, 5, 15, 0) - forward_flops(model, 5, 0, 0)
    assert attention == 4 * (2 + 2) * 4 * 3 * 15


def latent_model():
    return small(
        LatentAttention(
            num_heads=2,
            q_lora_rank=4,
            kv_lora_rank=6,
            qk_nope_head_dim=3,
            qk_rope_head_dim=2,
            v_head_dim=5,
        )
    )


def test_latent_attention_by_hand_in_prefill():
    model = latent_model()
    attention = forward_flops(model, 5, 15, 0) - forward_flops(model, 5, 0, 0)
    assert attention == 4 * 2 * 2 * (3 + 2 + 5) * 15


def test_latent_attention_by_hand_in_decode():
    model = latent_model()
    attention = decode_flops(model, 9) - forward_flops(model, 1, 0, 1)
    assert attention == 4 * 2 * 2 * (6 + 2 + 6) * 10


def test_windowed_layers_count_their_own_pairs():
    model = small(
        GroupedQueryAttention(
            num_heads=4, num_kv_heads=2, head_dim=3, window_tokens=3, windowed_layers=1
        )
    )
    linear = forward_flops(model, 8, 0, 8)
    pairs, windowed = causal_pairs([8]), causal_pairs([8], 3)
    exact = forward_flops(model, 8, pairs, 8, windowed)
    assert exact - linear == 4 * 4 * 3 * (3 * 36 + 1 * (1 + 2 + 6 * 3))
    # Without them: every token fills its window.
    assert forward_flops(model, 8, pairs, 8) - linear == 4 * 4 * 3 * (3 * 36 + 1 * 8 * 3)


@given(some_model, st.lists(st.integers(1, 5_000), min_size=1, max_size=5))
def test_a_window_is_bounded_from_above_when_its_pairs_are_not_given(name, sequence_lengths):
    model = MODELS[name]
    tokens, pairs = sum(sequence_lengths), causal_pairs(sequence_lengths)
    exact = forward_flops(model, tokens, pairs, tokens, causal_pairs(sequence_lengths, 128))
    assert exact <= forward_flops(model, tokens, pairs, tokens)


@given(some_model, st.integers(1, 10_000), st.integers(0, 10**8))
def test_backward_is_twice_forward(name, tokens, pairs):
    model = MODELS[name]
    assert backward_flops(model, tokens, pairs, tokens) == 2 * forward_flops(
        model, tokens, pairs, tokens
    )


@given(some_model, st.floats(1, 1e6), st.floats(0, 1e9), st.floats(0.1, 100))
def test_forward_is_linear_in_its_work(name, tokens, pairs, factor):
    model = MODELS[name]
    scaled = forward_flops(model, factor * tokens, factor * pairs, factor * tokens)
    assert scaled == pytest.approx(factor * forward_flops(model, tokens, pairs, tokens))


@given(st.sampled_from(["Qwen3-8B", "gpt-oss-120b"]), st.integers(1, 400))
def test_decoding_token_by_token_costs_what_one_pass_over_all_does(name, length):
    model = MODELS[name]
    decoded = decode_flops(model, np.arange(length)).sum()
    whole = forward_flops(
        model, length, causal_pairs([length]), length, causal_pairs([length], 128)
    )
    assert decoded == pytest.approx(whole)


@given(some_model, st.integers(0, 10_000), st.integers(1, 8))
def test_verifying_costs_the_single_tokens_it_replaces(name, context, query_tokens):
    model = MODELS[name]
    singles = decode_flops(model, context + np.arange(query_tokens)).sum()
    assert decode_flops(model, context, query_tokens) == pytest.approx(singles)


def test_results_have_the_shape_of_their_sequences():
    model = MODELS["gpt-oss-120b"]
    assert decode_flops(model, np.zeros((2, 3))).shape == (2, 3)
    assert forward_flops(model, np.ones(4), np.ones(4), np.ones(4)).shape == (4,)


def test_active_weights_rule_the_linear_part_of_experts():
    # 6 x active parameters a token is the usual estimate of training; the look-up is not in it.
    model = MODELS["DeepSeek-V3"]
    step = forward_flops(model, 1, 0, 1) + backward_flops(model, 1, 0, 1)
    used = model.active_parameters - model.embedding_parameters
    assert step == pytest.approx(6 * used, rel=1e-3)
