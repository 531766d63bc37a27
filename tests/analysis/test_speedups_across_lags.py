"""A baseline that differs in synchrony is still compared over the same draws (S11)."""

import numpy as np
import pytest

from simulator.analysis.projection import project
from tests.small_scenario import small


@pytest.fixture(scope="module", params=[6, 7])
def against_the_barrier(request):
    """A lag of 2 against the synchronous loop on the same two pools."""
    return project(
        small(
            pipeline={"placement": "disaggregated", "max_policy_lag": 2},
            steps=request.param,
            baseline={"pipeline.max_policy_lag": 0},
        )
    )


def test_both_arms_measure_the_same_steps_and_responses(against_the_barrier):
    own = against_the_barrier.tables["rollouts"]
    base = against_the_barrier.baseline.tables["rollouts"]
    for column in ("seed", "step", "rollout", "response_tokens", "rounds"):
        assert np.array_equal(own[column], base[column])


def test_speedups_are_ratios_of_the_printed_means(against_the_barrier):
    arm = against_the_barrier.to_json()
    base = arm["baseline"]
    for speedup, above, below in (
        ("end_to_end_speedup", base["step_time_s"], arm["step_time_s"]),
        ("rollout_speedup", base["phases_s"]["generation"], arm["phases_s"]["generation"]),
    ):
        assert arm[speedup]["mean"] == pytest.approx(above["mean"] / below["mean"], rel=1e-12)


def test_a_leash_of_two_saves_time(against_the_barrier):
    assert against_the_barrier.estimates["end_to_end_speedup"].low > 1.0
    assert against_the_barrier.baseline.estimates["mean_policy_lag"].mean == 0.0
