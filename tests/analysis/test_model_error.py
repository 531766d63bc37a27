"""The cost models' error in an interval: what cancels, what adds, and when it vanishes."""

from math import exp, hypot, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.analysis.arm import Averaging, simulate_arm
from simulator.analysis.model_error import (
    StepShares,
    rollout_speedup_sigma,
    step_speedup_sigma,
    widened,
)
from simulator.results.estimates import Estimate
from simulator.specs.catalog import resolve
from simulator.specs.hardware import ModelError
from tests.small_scenario import small

ERROR = ModelError(generation=0.1, speculation=0.06, weight_sync=0.5, source="test")


def shares(generation=0.6, training=0.3, weight_sync=0.05, is_speculative=False, error=ERROR):
    return StepShares(error, 0.2, generation, training, weight_sync, is_speculative)


def test_an_interval_without_chance_is_the_quantiles_of_a_lognormal():
    wide = widened(Estimate(8.0, 8.0, 8.0), 0.1)
    assert wide.low == pytest.approx(8.0 * exp(-0.196))
    assert wide.high == pytest.approx(8.0 * exp(0.196))


@given(st.floats(1e-6, 1e6), st.floats(0.0, 0.9), st.floats(0.0, 1.5))
def test_widening_never_narrows_and_keeps_the_mean(mean, chance, sigma):
    estimate = Estimate(mean, mean * (1 - chance), mean * (1 + chance))
    wide = widened(estimate, sigma)
    assert wide.mean == mean
    assert 0.0 < wide.low <= mean <= wide.high
    assert wide.high >= estimate.high * (1 - 1e-9)


def test_chance_and_model_error_join_as_independent_errors():
    wide = widened(Estimate(1.0, 0.9, 1.1), 0.05)
    assert log(wide.high) == pytest.approx(hypot(log(1.1), 1.96 * 0.05))


def test_a_phase_that_does_not_happen_has_no_error():
    assert widened(Estimate(0.0, 0.0, 0.0), 0.3) == Estimate(0.0, 0.0, 0.0)


def test_a_step_of_generation_alone_errs_as_generation_does():
    assert shares(1.0, 0.0, 0.0).step_sigma == pytest.approx(0.1)
    assert shares(1.0, 0.0, 0.0, is_speculative=True).step_sigma == pytest.approx(hypot(0.1, 0.06))


def test_equal_arms_on_one_engine_have_a_certain_speedup():
    arm = shares()
    assert rollout_speedup_sigma(arm, arm, shares_engine=True) == 0.0
    assert step_speedup_sigma(arm, arm, shares_engine=True, shares_trainer=True) == 0.0


def test_other_engines_err_independently():
    arm = shares()
    apart = rollout_speedup_sigma(arm, arm, shares_engine=False)
    assert apart == pytest.approx(hypot(0.1, 0.1))


def test_a_speculative_speedup_keeps_the_error_of_verifying():
    base, arm = shares(0.6, 0.3), shares(0.35, 0.5, is_speculative=True)
    assert rollout_speedup_sigma(base, arm, shares_engine=True) == pytest.approx(0.06)
    assert step_speedup_sigma(base, arm, shares_engine=True, shares_trainer=True) == pytest.approx(
        hypot(0.25 * 0.1, 0.35 * 0.06, 0.2 * 0.2)
    )


def test_intervals_of_an_arm_hold_the_error_of_its_profile():
    resolved = resolve(
        small(steps=2, seeds=1, workload__response_length={"kind": "fixed", "tokens": 50})
    )
    arm = simulate_arm(resolved, Averaging.over(resolved.scenario), lambda: None)
    phases = arm.phases()
    error = resolved.profile.training.error
    assert log(phases["training"].high / phases["training"].mean) == pytest.approx(
        1.96 * error.dense, rel=1e-6
    )
    assert phases["data"].low == phases["data"].high
