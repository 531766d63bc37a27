"""The loop: closed forms, accounts that close, lag that stays in its bound."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.results.statistics import (
    generation_seconds,
    phase_seconds,
    policy_lags,
    running_over_time,
    step_seconds,
)
from tests.pipeline.small_world import ConstantStages, constant_batch, random_batch, run_world
from tests.rollout.linear_table import LinearCosts

FIXED_ROUND = LinearCosts(fixed_s=0.03, sequence_s=0.0, token_s=0.0, prompt_token_s=0.0)
"""One iteration takes 0.03 s: a batch of 100 tokens (99 rounds, one prefill) takes 3 s."""


def three_seconds():
    return constant_batch(response=100)


def test_synchronous_step_is_the_sum_of_its_stages():
    stages = ConstantStages(
        data_s=0.5, reward_s=0.25, prepare_s=1.0, logprob_s=0.75, training_s=2.0
    )
    recorder = run_world(three_seconds(), stages, costs=FIXED_ROUND)
    assert step_seconds(recorder.steps) == pytest.approx(np.full(5, 7.5), rel=1e-12)
    phases = phase_seconds(recorder.steps)
    assert {name: round(float(values[2]), 9) for name, values in phases.items()} == {
        "data": 0.5,
        "prepare": 1.0,
        "exposed_generation": 3.0,
        "reward": 0.25,
        "logprob": 0.75,
        "training": 2.0,
    }


@pytest.mark.parametrize(("training_s", "expected"), [(2.0, 3.0), (5.0, 5.0)])
def test_one_step_off_takes_the_longer_of_generation_and_training(training_s, expected):
    recorder = run_world(
        three_seconds(),
        ConstantStages(training_s=training_s),
        steps=12,
        lag=1,
        open_batches=1,
        costs=FIXED_ROUND,
    )
    assert step_seconds(recorder.steps)[3:] == pytest.approx(np.full(9, expected), rel=0.011)


def test_a_trainer_slower_than_generation_exposes_none_of_it():
    recorder = run_world(
        three_seconds(), ConstantStages(training_s=5.0), steps=8, lag=1, costs=FIXED_ROUND
    )
    assert phase_seconds(recorder.steps)["exposed_generation"][2:] == pytest.approx(0.0)


stage_seconds = st.floats(0.0, 2.0)


@given(
    st.integers(0, 1000),
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(1, 9),
    st.tuples(stage_seconds, stage_seconds, stage_seconds, stage_seconds, stage_seconds),
)
def test_accounts_close_and_lag_stays_in_its_bound(seed, lag, replicas, slots, seconds):
    stages = ConstantStages(*seconds)
    steps = 6
    recorder = run_world(
        random_batch(seed), stages, steps=steps, lag=lag, replicas=replicas, max_sequences=slots
    )
    phases = phase_seconds(recorder.steps)
    assert sum(phases.values()) == pytest.approx(step_seconds(recorder.steps), abs=1e-9)
    assert all(np.all(values >= -1e-12) for values in phases.values())
    ends = [record.end_s for record in recorder.steps]
    begins = [record.begin_s for record in recorder.steps]
    assert begins[1:] == ends[:-1]
    lags = policy_lags(recorder, range(steps))
    assert lags.size == steps * 12
    assert lags.min() >= 0
    assert lags.max() <= lag


@given(st.integers(0, 1000), st.integers(0, 3), st.integers(1, 3), st.integers(1, 9))
def test_every_rollout_is_generated_once_and_no_token_is_lost(seed, lag, replicas, slots):
    steps = 5
    recorder = run_world(
        random_batch(seed),
        ConstantStages(training_s=0.01, prepare_s=0.002),
        steps=steps,
        lag=lag,
        replicas=replicas,
        max_sequences=slots,
    )
    done = [
        (batch, rollout)
        for chunk in recorder.rollouts
        for batch, rollout in zip(chunk.batch.tolist(), chunk.rollout.tolist(), strict=True)
    ]
    assert len(done) == len(set(done))
    trained = {(step, rollout) for step in range(steps) for rollout in range(12)}
    assert trained <= set(done)
    for chunk in recorder.batches:
        assert np.all(np.diff(chunk.start_s) > 0)
        assert chunk.running.max() <= slots


def test_lag_zero_never_generates_under_training():
    recorder = run_world(
        random_batch(1), ConstantStages(training_s=1.0, prepare_s=0.5), steps=4, lag=0
    )
    instants, running = running_over_time(recorder.batches)
    for record in recorder.steps:
        inside = (instants > record.generated_s + 1e-9) & (instants < record.end_s)
        assert not running[inside].any()


def test_a_longer_leash_never_slows_generation_of_equal_rollouts():
    paces = [
        step_seconds(
            run_world(three_seconds(), ConstantStages(), steps=12, lag=lag, costs=FIXED_ROUND).steps
        )[-6:].mean()
        for lag in (0, 1, 2, 4)
    ]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(paces))


def test_synchronous_pace_is_submission_to_last_completion():
    recorder = run_world(three_seconds(), ConstantStages(data_s=1.0), costs=FIXED_ROUND)
    seconds = generation_seconds(recorder.steps, is_synchronous=True)
    assert seconds == pytest.approx(np.full(5, 3.0), rel=1e-12)


def test_doubling_every_cost_doubles_every_time():
    slow = LinearCosts(*(2 * value for value in (1e-3, 1e-5, 1e-9, 1e-6)))
    once = run_world(random_batch(3), ConstantStages(0.1, 0.2, 0.3, 0.4, 0.5), lag=2)
    twice = run_world(random_batch(3), ConstantStages(0.2, 0.4, 0.6, 0.8, 1.0), lag=2, costs=slow)
    assert step_seconds(twice.steps) == pytest.approx(2 * step_seconds(once.steps), rel=1e-9)
