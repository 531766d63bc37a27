"""One test a rule of docs/semantics.md; the name of each begins with the rule it holds."""

import re
from pathlib import Path

import numpy as np
import pytest

from simulator.analysis.arm import Averaging, simulate_arm
from simulator.pipeline.batch import draw_batch
from simulator.policies.acceptance import PositionalAcceptance, geometric_acceptance_length
from simulator.results.estimates import estimate_ratio
from simulator.results.statistics import (
    generation_seconds,
    phase_seconds,
    policy_lags,
    running_over_time,
    step_seconds,
)
from simulator.specs.catalog import resolve
from simulator.specs.scenario import Scenario
from simulator.streams import Streams
from tests.pipeline.small_world import ConstantStages, constant_batch, random_batch, run_world
from tests.rollout.linear_table import LinearCosts
from tests.small_scenario import small

STAGES = ConstantStages(data_s=0.05, reward_s=0.02, prepare_s=0.1, logprob_s=0.04, training_s=0.3)
THREE_SECONDS = LinearCosts(fixed_s=0.03, sequence_s=0.0, token_s=0.0, prompt_token_s=0.0)


def lagged(lag=2, steps=8):
    return run_world(random_batch(5), STAGES, steps=steps, lag=lag)


def scenario(**changes):
    document = {
        "name": "semantics",
        "model": "any",
        "cluster": {"gpus": 8, "hardware": "any"},
        "workload": {
            "prompts_per_step": 64,
            "samples_per_prompt": 4,
            "prompt_length": {"kind": "lognormal", "mean": 200, "sigma": 0.4},
            "response_length": {"kind": "lognormal", "mean": 900, "sigma": 0.8},
            "within_group_correlation": 0.4,
            "max_response_tokens": 2000,
        },
    }
    return Scenario.model_validate(document | changes)


def test_every_rule_of_the_document_has_a_test_here():
    document = Path(__file__).parents[2] / "docs" / "semantics.md"
    rules = re.findall(r"^\*\*S(\d+)\.", document.read_text(encoding="utf-8"), re.MULTILINE)
    tested = {match[1] for name in globals() if (match := re.match(r"test_s(\d+)_", name))}
    assert rules == [str(number) for number in range(1, len(rules) + 1)]
    assert tested == set(rules)


@pytest.mark.parametrize("lag", [0, 2])
def test_s1_steps_follow_one_another_without_gap_or_overlap(lag):
    steps = lagged(lag).steps
    assert steps[0].begin_s == 0.0
    assert [record.begin_s for record in steps[1:]] == [record.end_s for record in steps[:-1]]


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_s2_phases_add_up_to_the_step(lag):
    steps = lagged(lag).steps
    assert sum(phase_seconds(steps).values()) == pytest.approx(step_seconds(steps), abs=1e-12)


def test_s3_exposed_generation_is_the_trainers_wait_and_all_of_it_when_synchronous():
    synchronous = lagged(lag=0).steps
    waits = [record.generated_s - record.submitted_s for record in synchronous]
    assert phase_seconds(synchronous)["exposed_generation"] == pytest.approx(waits, abs=1e-12)
    hidden = run_world(constant_batch(), ConstantStages(training_s=9.0), lag=1, steps=6).steps
    assert phase_seconds(hidden)["exposed_generation"][2:] == pytest.approx(0.0)


def test_s4_the_pace_of_generation_does_not_depend_on_the_trainer():
    source = constant_batch(response=100)
    alone = run_world(source, ConstantStages(), lag=0, costs=THREE_SECONDS).steps
    busy = run_world(source, STAGES, lag=0, costs=THREE_SECONDS).steps
    assert step_seconds(alone) == pytest.approx(generation_seconds(busy, is_synchronous=True))


def test_s5_policy_lag_counts_updates_between_first_token_and_training():
    assert set(policy_lags(lagged(lag=0), range(8))) == {0}
    lags = policy_lags(lagged(lag=2), range(8))
    assert lags.max() == 2
    assert lags.min() >= 0


def test_s6_acceptance_length_counts_the_bonus_token():
    assert geometric_acceptance_length(np.array(0.0), 5) == pytest.approx(1.0)
    assert geometric_acceptance_length(np.array(1.0), 5) == pytest.approx(6.0)
    speculation = {"method": "eagle3", "draft_length": 3, "acceptance_length": 2.5}
    batch = draw_batch(scenario(speculation=speculation), Streams(0, 0), 0)
    pooled = (batch.response_tokens - 1).sum() / batch.rounds.sum()
    assert pooled == pytest.approx(2.5, rel=0.01)


def test_s7_unconditional_rates_sum_to_the_acceptance_length_less_one():
    law = PositionalAcceptance(rates=(0.9, 0.5, 0.5))
    assert law.request_lengths(np.zeros(1), 3)[0] == pytest.approx(2.9)


def test_s8_clipped_responses_are_cut_at_the_limit_and_counted():
    batch = draw_batch(scenario(), Streams(0, 0), 0)
    assert batch.is_clipped.any()
    assert set(batch.response_tokens[batch.is_clipped]) == {2000}
    assert batch.response_tokens.max() == 2000


def test_s9_throughput_counts_response_tokens_over_step_time_and_all_gpus():
    asked = small(steps=2, seeds=1)
    arm = simulate_arm(resolve(asked), Averaging.over(asked), lambda: None)
    (run,) = arm.replications
    tokens = sum(int(batch.response_tokens.sum()) for batch in run.batches)
    seconds = sum(record.end_s - record.begin_s for record in run.loop.steps)
    throughput = arm.estimates()["tokens_per_s_per_gpu"].mean
    assert throughput == pytest.approx(tokens / seconds / 4)


def test_s10_a_synchronous_speedup_is_bounded_by_its_generation_share():
    source = constant_batch(response=100)
    half = LinearCosts(fixed_s=0.015, sequence_s=0.0, token_s=0.0, prompt_token_s=0.0)
    base = run_world(source, STAGES, costs=THREE_SECONDS).steps
    fast = run_world(source, STAGES, costs=half).steps
    share = phase_seconds(base)["exposed_generation"].sum() / step_seconds(base).sum()
    measured = step_seconds(base).sum() / step_seconds(fast).sum()
    assert measured == pytest.approx(1 / (1 - share + share / 2.0), rel=1e-9)


def test_s11_speedups_are_ratios_of_means_baseline_over_scenario():
    base, fast = np.array([2.0, 4.0]), np.array([1.0, 3.0])
    assert estimate_ratio(base, fast).mean == pytest.approx(6.0 / 4.0)


def test_s12_intervals_narrow_with_the_root_of_the_blocks():
    generator = np.random.default_rng(0)
    few, many = generator.normal(5, 1, (2, 25)), generator.normal(5, 1, (2, 2500))
    wide, narrow = estimate_ratio(*few), estimate_ratio(*many)
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx(10, rel=0.35)


def test_s13_a_scenario_and_its_baseline_generate_the_same_responses():
    speculation = {"method": "eagle3", "draft_length": 5, "acceptance_length": 4.0}
    plain = draw_batch(scenario(), Streams(2, 1), 3)
    speculative = draw_batch(scenario(speculation=speculation), Streams(2, 1), 3)
    assert np.array_equal(plain.response_tokens, speculative.response_tokens)
    assert np.array_equal(plain.prompt_tokens, speculative.prompt_tokens)
    assert np.all(speculative.rounds <= plain.rounds)


def test_s14_the_running_batch_rises_from_and_falls_to_zero_in_a_synchronous_step():
    recorder = lagged(lag=0, steps=1)
    _, running = running_over_time(recorder.batches)
    assert running.max() == 12
    assert running[-1] == 0


def test_s15_in_flight_updates_pause_generation_and_lose_nothing():
    calm = run_world(random_batch(5), ConstantStages(training_s=0.01), lag=2, steps=6)
    paused = run_world(
        random_batch(5), ConstantStages(training_s=0.01, prepare_s=0.05), lag=2, steps=6
    )
    assert step_seconds(paused.steps).sum() > step_seconds(calm.steps).sum()
    assert sum(chunk.rollout.size for chunk in paused.rollouts) >= 6 * 12
