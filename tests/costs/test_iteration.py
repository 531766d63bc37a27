"""Iterations and rounds: what verifying costs beside decoding, and what engine software adds."""

from itertools import pairwise

import numpy as np
import pytest

from simulator.costs.collectives import all_reduce_s
from simulator.costs.generation import GenerationCosts
from simulator.costs.iteration import IterationShape, forward_pass
from simulator.costs.layers import Target, attention_projections_s, tensor_reductions_s
from simulator.costs.operators import gemm_s
from simulator.costs.round_table import RoundTable
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.parallelism import EngineParallelism

GB200 = find_profile("gb200")
QWEN_8B = find_model("Qwen3-8B")
QWEN_235B = find_model("Qwen3-235B-A22B")
DEEPSEEK = find_model("DeepSeek-V3")
GPT_OSS = find_model("gpt-oss-120b")


def target(model, profile=GB200, precision="bf16", **ranks):
    return Target(model, profile, EngineParallelism(**({"tensor": 1} | ranks)), precision, "bf16")


def shape(sequences, context, query=1, prefill=0.0, attended=0.0):
    sequences = np.atleast_1d(np.asarray(sequences, dtype=float))
    ones = np.ones_like(sequences)
    return IterationShape(sequences, context * ones, query, prefill * ones, attended * ones)


def costs(model=QWEN_8B, draft_length=0, software=True, method="ngram", captured=512, **ranks):
    return GenerationCosts(
        target=target(model, **ranks),
        method=method if draft_length else "none",
        draft_length=draft_length,
        drafter=None,
        software=GB200.software if software else None,
        captured_tokens=captured,
    )


def test_verify_reads_the_cache_once_whatever_the_draft_length():
    """At long context a pass over k + 1 tokens costs far less than k + 1 passes."""
    context = 30_000.0
    decode, verify = (
        forward_pass(target(QWEN_8B), shape(32, context, query)).attention_s[0] for query in (1, 4)
    )
    assert verify < 1.2 * decode


@pytest.mark.parametrize("model", [QWEN_8B, QWEN_235B, DEEPSEEK, GPT_OSS], ids=lambda m: m.name)
def test_more_query_tokens_never_cost_less(model):
    ranks = {"tensor": 8, "expert": 8} if model.is_moe else {"tensor": 2}
    passes = [
        forward_pass(target(model, **ranks), shape([1, 8, 64, 256], 2000.0, query)).total_s
        for query in (1, 2, 4, 8)
    ]
    for fewer, more in pairwise(passes):
        assert np.all(more >= fewer - 1e-12)
    assert np.all(passes[-1] < 8 * passes[0])


def test_decode_of_one_sequence_is_bound_by_reading_the_weights():
    seconds = forward_pass(target(QWEN_8B), shape(1, 100.0)).total_s[0]
    floor = (QWEN_8B.weight_bytes("bf16") - 2 * QWEN_8B.embedding_parameters) / 8e12
    assert floor < seconds < 3 * floor


def test_tensor_parallelism_divides_the_work_but_not_the_messages():
    one = forward_pass(target(QWEN_8B), shape(64, 8000.0))
    four = forward_pass(target(QWEN_8B, tensor=4), shape(64, 8000.0))
    assert four.linear_s[0] < 0.6 * one.linear_s[0]
    assert four.attention_s[0] < 0.5 * one.attention_s[0]
    assert one.reduction_s[0] == 0.0
    assert four.reduction_s[0] > 0.0


def test_a_sequence_cannot_be_split_among_attention_replicas():
    wide = target(QWEN_235B, tensor=1, data=64, expert=64, precision="fp8")
    one, many = (forward_pass(wide, shape(count, 9000.0)) for count in (1, 64))
    assert one.attention_s[0] == pytest.approx(many.attention_s[0])


def test_prompts_ride_along_and_cost_what_they_compute():
    alone = forward_pass(target(QWEN_8B), shape(64, 1000.0)).total_s[0]
    with_prompt = forward_pass(
        target(QWEN_8B), shape(64, 1000.0, 1, prefill=4096.0, attended=4096.0**2 / 2)
    ).total_s[0]
    matmul_s = 2 * QWEN_8B.active_matmul_parameters * 4096 / 2.5e15
    assert with_prompt - alone > 0.9 * matmul_s
    assert with_prompt - alone < 4 * matmul_s


def test_windows_bound_what_attention_reads():
    near, far = (
        forward_pass(target(GPT_OSS, tensor=8, expert=8), shape(64, context)).attention_s[0]
        for context in (4_000.0, 64_000.0)
    )
    assert far < 0.75 * 16 * near


def test_pipeline_stages_take_turns_on_micro_batches():
    whole = forward_pass(target(QWEN_8B), shape(32, 1000.0)).total_s[0]
    staged = forward_pass(target(QWEN_8B, pipeline=2), shape(64, 1000.0)).total_s[0]
    assert staged == pytest.approx(whole, rel=0.01)


def test_software_adds_to_kernels_and_ideal_leaves_it_out():
    measured = costs().round_cost(np.array([64.0]), np.array([1000.0]))
    ideal = costs(software=False).round_cost(np.array([64.0]), np.array([1000.0]))
    software = GB200.software
    expected = software.step_s + 64 * software.request_s + QWEN_8B.num_layers * software.layer_s
    assert measured.total_s[0] - ideal.total_s[0] == pytest.approx(expected)


def test_leaving_the_captured_range_costs_the_eager_floor():
    """The range is counted in tokens, so verifying leaves it at a smaller batch."""
    context = np.full(2, 1000.0)
    plain = costs().round_cost(np.array([128.0, 129.0]), context).total_s
    assert plain[1] < 1.1 * plain[0]
    verify = costs(draft_length=3).round_cost(np.array([128.0, 129.0]), context)
    assert verify.target_s[1] == pytest.approx(GB200.software.eager_step_s)
    assert verify.target_s[0] < GB200.software.eager_step_s


def test_ngram_lookup_grows_with_batch_and_context():
    draft = costs(draft_length=3).round_cost(np.array([1.0, 2.0, 2.0]), np.array([0.0, 0.0, 1e4]))
    software = GB200.software
    assert draft.draft_s == pytest.approx(
        [
            software.ngram_request_s,
            2 * software.ngram_request_s,
            2 * (software.ngram_request_s + 1e4 * software.ngram_context_token_s),
        ]
    )


@pytest.mark.parametrize("draft_length", [0, 3])
def test_looked_up_rounds_are_the_priced_ones(draft_length):
    priced = costs(draft_length=draft_length)
    table = RoundTable(priced, max_sequences=2000, max_context_tokens=40_000.0)
    generator = np.random.default_rng(0)
    sequences = generator.integers(1, 2000, 500).astype(float)
    context = generator.uniform(10, 40_000, 500)
    error = table.round_s(sequences, context) / priced.round_cost(sequences, context).total_s - 1
    assert np.abs(error).max() < 0.01
    assert np.abs(error).mean() < 0.002


def test_the_table_keeps_the_step_at_the_end_of_the_captured_range():
    priced = costs(draft_length=3, captured=1200)
    table = RoundTable(priced, max_sequences=3000, max_context_tokens=5_000.0)
    sequences, context = np.array([300.0, 301.0]), np.full(2, 900.0)
    exact = priced.round_cost(sequences, context)
    assert exact.target_s[0] < exact.target_s[1] == GB200.software.eager_step_s
    assert table.round_s(sequences, context) == pytest.approx(exact.total_s, rel=1e-3)


def engine(**numbers):
    return GB200.software.model_copy(update={"layer_s": 0.0, "quantise_s": 0.0, **numbers})


def priced_with(software, model=QWEN_8B, precision="bf16", prefill=0.0, **ranks):
    priced = GenerationCosts(
        target=target(model, precision=precision, **ranks),
        method="none",
        draft_length=0,
        drafter=None,
        software=software,
        captured_tokens=512,
    )
    one = np.array([8.0])
    return priced.round_cost(one, 500.0 * one, prefill * one, prefill**2 / 2 * one).target_s[0]


def test_small_kernels_are_charged_once_a_layer():
    extra = priced_with(engine(layer_s=1e-5)) - priced_with(engine())
    assert extra == pytest.approx(QWEN_8B.num_layers * 1e-5)


@pytest.mark.parametrize(
    ("model", "products"),
    [
        # Four products a dense layer; Qwen's experts quantise inside their kernel, and so do
        # DeepSeek's routed ones, while its shared expert and dense layers have two products each.
        (QWEN_8B, 4 * 36),
        (QWEN_235B, 2 * 94),
        (DEEPSEEK, 2 * 61 + 2 * 61),
        (GPT_OSS, 0),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_quantising_is_charged_for_each_4_bit_product(model, products):
    ranks = {"tensor": 8, "expert": 8} if model.is_moe else {"tensor": 1}
    extra = priced_with(engine(quantise_s=1e-5), model, "fp4", **ranks) - priced_with(
        engine(), model, "fp4", **ranks
    )
    assert extra == pytest.approx(products * 1e-5)


def test_iterations_with_prompts_beyond_the_captured_range_cost_more_a_layer():
    slow = engine(prompt_layer_s=1e-3, eager_step_s=0.0)
    fast = engine(prompt_layer_s=0.0, eager_step_s=0.0)
    for prefill, charged in ((0.0, 0), (20.0, 0), (2_000.0, 36)):
        extra = priced_with(slow, prefill=prefill) - priced_with(fast, prefill=prefill)
        assert extra == pytest.approx(charged * 1e-3), prefill


def test_scheduling_in_turns_adds_its_own_numbers():
    software = GB200.software
    turns = software.scheduled(is_ahead=False)
    assert software.scheduled(is_ahead=True) is software
    assert turns.step_s == software.step_s + software.synchronous_step_s
    assert turns.request_s == software.request_s + software.synchronous_request_s


def test_attention_that_a_checkpoint_leaves_in_16_bits_is_priced_so():
    tokens = np.array([64.0])
    plain, quantised, kept = (
        attention_projections_s(target(model, precision=precision), tokens)[0]
        for model, precision in (
            (QWEN_8B, "bf16"),
            (QWEN_8B, "fp4"),
            (QWEN_8B.model_copy(update={"quantises_attention": False}), "fp4"),
        )
    )
    assert kept == pytest.approx(plain)
    assert quantised < plain


def test_a_norm_over_all_heads_adds_an_all_reduce_a_layer():
    minimax = find_model("MiniMax-M2.5")
    per_head = minimax.model_copy(
        update={"attention": minimax.attention.model_copy(update={"norm_spans_heads": False})}
    )
    tokens = np.array([64.0])
    for ranks, layers in ((1, 0), (4, 62)):
        extra = (
            tensor_reductions_s(target(minimax, tensor=ranks), tokens)
            - tensor_reductions_s(target(per_head, tensor=ranks), tokens)
        )[0]
        assert extra == pytest.approx(layers * all_reduce_s(GB200, 8.0 * 64.0, ranks))


def test_latent_down_projections_are_copied_and_the_rest_is_split():
    """On many ranks only the heads shrink: what is left is at least the copied product."""
    tokens = np.array([64.0])
    one, eight = (
        attention_projections_s(target(DEEPSEEK, precision="fp8", tensor=ranks), tokens)[0]
        for ranks in (1, 8)
    )
    copied = 61 * gemm_s(GB200, "fp8_block", 64.0, 1536 + 512 + 64, 7168)
    assert copied < eight < one
