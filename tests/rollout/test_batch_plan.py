"""The plan of a replica's batch: against a stepped reference, closed forms, conservation."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InfeasibleError
from simulator.rollout.batch import BatchState
from simulator.rollout.batch_plan import plan_batch
from simulator.rollout.sequence import BatchLimits, Sequence
from simulator.rollout.timeline import price_plan
from tests.rollout.linear_table import LinearCosts, LinearTable
from tests.rollout.reference import step_every_iteration

UNLIMITED = 10**12


def make_sequences(rounds, prompts, tokens_per_round=1.0, first=0):
    return [
        Sequence(
            rollout=first + index,
            batch=0,
            prefill_tokens=prompt,
            context_tokens=float(prompt + 1),
            rounds_left=count,
            tokens_per_round=tokens_per_round,
        )
        for index, (count, prompt) in enumerate(zip(rounds, prompts, strict=True))
    ]


def limits(max_sequences=UNLIMITED, max_batched_tokens=8192, kv_tokens=1e15, query_tokens=1):
    return BatchLimits(max_sequences, max_batched_tokens, kv_tokens, query_tokens)


work = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 50)), min_size=1, max_size=40)


@given(work, st.integers(1, 12), st.integers(1, 80), st.integers(1, 8))
def test_plan_agrees_with_a_replica_stepped_iteration_by_iteration(
    items, max_sequences, max_batched_tokens, query_tokens
):
    sequences = make_sequences(*zip(*items, strict=True))
    bounds = limits(max_sequences, max_batched_tokens, query_tokens=query_tokens)
    plan = plan_batch(BatchState(waiting=deque(sequences)), bounds)
    timeline = price_plan(plan, LinearTable(), 0.0)
    expected = step_every_iteration(sequences, bounds, LinearCosts())
    planned = {
        sequence.rollout: instant
        for sequence, instant in zip(plan.completed, timeline.completed_s, strict=True)
    }
    assert planned.keys() == expected.keys()
    for rollout, instant in expected.items():
        assert planned[rollout] == pytest.approx(instant, rel=1e-9)


@given(work, st.integers(1, 12), st.integers(1, 30), st.integers(120, 400))
def test_cutting_a_plan_anywhere_changes_nothing(items, max_sequences, cut, kv_tokens):
    sequences = make_sequences(*zip(*items, strict=True))
    bounds = limits(max_sequences, 64, kv_tokens=float(kv_tokens))
    state = BatchState(waiting=deque(sequences))
    whole = price_plan(plan_batch(state, bounds), LinearTable(), 0.0)
    expected = dict(zip((s.rollout for s in whole.plan.completed), whole.completed_s, strict=True))
    pieces, now = {}, 0.0
    while not state.is_empty:
        plan = plan_batch(state, bounds, until=cut)
        timeline = price_plan(plan, LinearTable(), now)
        pieces.update(zip((s.rollout for s in plan.completed), timeline.completed_s, strict=True))
        state, now = plan.end, timeline.end_s
    assert pieces.keys() == expected.keys()
    for rollout, instant in expected.items():
        assert pieces[rollout] == pytest.approx(instant, rel=1e-9)


@given(work, st.integers(110, 300))
def test_tight_memory_loses_nothing_and_is_never_exceeded(items, kv_tokens):
    sequences = make_sequences(*zip(*items, strict=True))
    plan = plan_batch(BatchState(waiting=deque(sequences)), limits(kv_tokens=float(kv_tokens)))
    assert sorted(s.rollout for s in plan.completed) == list(range(len(sequences)))
    assert sorted(s.rollout for s in plan.admitted) == list(range(len(sequences)))
    held = plan.sequences * (plan.context_tokens + plan.context_spread)
    assert np.all(held <= kv_tokens * (1 + 1e-9))
    tokens = (plan.sequences * plan.iterations).sum()
    assert tokens == sum(s.rounds_left for s in sequences)
    assert plan.end.is_empty


def test_plain_equal_lengths_match_the_closed_form_to_1e9():
    batch, prompt, response = 32, 100, 500
    costs = LinearCosts()
    plan = plan_batch(
        BatchState(waiting=deque(make_sequences([response - 1] * batch, [prompt] * batch))),
        limits(max_batched_tokens=batch * prompt),
    )
    timeline = price_plan(plan, LinearTable(costs), 0.0)
    n, first = response - 1, prompt + 1
    prefill = costs.fixed_s + costs.prompt_token_s * batch * prompt
    decode = (
        n * (costs.fixed_s + costs.sequence_s * batch + costs.token_s * batch * first)
        + costs.token_s * batch * n * (n - 1) / 2
    )
    assert timeline.end_s == pytest.approx(prefill + decode, rel=1e-9)


def test_the_latest_admitted_is_thrown_out_first_and_recomputed():
    sequences = make_sequences([100, 100, 100], [10, 10, 10])
    plan = plan_batch(BatchState(waiting=deque(sequences)), limits(kv_tokens=250.0))
    assert plan.preemptions >= 1
    assert [s.rollout for s in plan.completed][-1] == 2
    recomputed = plan.prefill_tokens.sum() - 30
    assert recomputed > 50


def test_a_sequence_larger_than_memory_is_refused_with_numbers():
    sequences = make_sequences([500], [10])
    with pytest.raises(InfeasibleError, match="250 tokens"):
        plan_batch(BatchState(waiting=deque(sequences)), limits(kv_tokens=250.0))


def test_a_full_batch_refills_as_soon_as_one_leaves():
    sequences = make_sequences([10, 20, 30], [1, 1, 1])
    plan = plan_batch(BatchState(waiting=deque(sequences)), limits(max_sequences=2))
    assert plan.sequences.max() == 2
    assert plan.waiting.max() == 1
    assert int(plan.iterations.sum()) == 1 + 10 + 1 + 30


@pytest.mark.parametrize("budget", [7, 64, 1000])
def test_a_prompt_token_attends_to_itself_and_all_before_it_whatever_the_chunks(budget):
    plan = plan_batch(
        BatchState(waiting=deque(make_sequences([5], [100]))), limits(max_batched_tokens=budget)
    )
    assert plan.prefill_tokens.sum() == 100
    pairs = (plan.iterations * plan.prefill_context).sum()
    assert pairs == pytest.approx(100 * 101 / 2, rel=1e-12)
