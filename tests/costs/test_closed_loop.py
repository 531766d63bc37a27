"""Time per output token of a closed loop: limits, conservation of work, directions."""

import numpy as np
import pytest

from simulator.costs.closed_loop import ClosedLoop, closed_loop_tpot_s
from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import Target
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.parallelism import EngineParallelism

H100 = find_profile("h100_sxm")
COSTS = GenerationCosts(
    target=Target(find_model("Qwen3-8B"), H100, EngineParallelism(tensor=1), "bf16", "bf16"),
    method="none",
    draft_length=0,
    drafter=None,
    software=H100.software,
    captured_tokens=512,
)


def loop(concurrency, prompt=1_000.0, output=1_000.0, budget=8_192.0):
    concurrency = np.atleast_1d(np.asarray(concurrency, dtype=float))
    ones = np.ones_like(concurrency)
    return ClosedLoop(concurrency, prompt * ones, output * ones, budget)


def test_a_request_alone_decodes_undisturbed():
    alone = loop(1.0)
    assert alone.mixed_share[0] == 0.0
    plain = COSTS.round_cost(np.array([1.0]), np.array([1_500.0])).total_s
    assert closed_loop_tpot_s(COSTS, alone) == pytest.approx(plain)


@pytest.mark.parametrize("prompt", [200.0, 5_000.0, 30_000.0])
@pytest.mark.parametrize("output", [100.0, 4_000.0])
def test_every_prompt_token_is_computed_once(prompt, output):
    """Each other request brings one prompt while ``output`` iterations pass."""
    server = loop([2.0, 16.0, 256.0], prompt, output)
    computed = server.mixed_share * server.prefill_tokens
    assert computed == pytest.approx((server.concurrency - 1.0) * prompt / output)


def test_where_prompts_are_rare_each_adds_its_own_iteration():
    """To first order: plain + (B - 1) / O times what a prompt adds to an iteration."""
    server = loop(8.0, 1_000.0, 100_000.0)
    context = server.context_tokens
    plain = COSTS.round_cost(server.concurrency, context).total_s
    mixed = COSTS.round_cost(
        server.concurrency, context, np.array([1_000.0]), np.array([5e5])
    ).total_s
    expected = plain + 7.0 / 100_000.0 * (mixed - plain)
    assert closed_loop_tpot_s(COSTS, server) == pytest.approx(expected, rel=1e-5)


def test_chunks_of_a_long_prompt_stay_within_the_budget():
    server = loop(4.0, 30_000.0, 1e6)
    assert server.prefill_tokens[0] <= 8_192.0


def test_more_requests_and_shorter_answers_slow_every_token():
    seconds = closed_loop_tpot_s(COSTS, loop([1.0, 4.0, 16.0, 64.0, 256.0]))
    assert np.all(np.diff(seconds) > 0)
    busy = closed_loop_tpot_s(COSTS, loop(64.0, 1_000.0, 100.0))
    assert busy[0] > 1.5 * closed_loop_tpot_s(COSTS, loop(64.0, 1_000.0, 1_000.0))[0]
