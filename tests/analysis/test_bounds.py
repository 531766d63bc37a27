"""What faster generation can save at most, and what a lagged trainer sees of it."""

import pytest

from simulator.analysis.projection import project
from tests.small_scenario import small

LAGGED = {"placement": "disaggregated", "max_policy_lag": 2}


def asynchronous(**changes):
    return project(small(pipeline=LAGGED, steps=6, seeds=1, baseline=None, **changes))


@pytest.mark.parametrize("draft_length", [1, 3, 5])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("training_efficiency", [0.02, 0.6])
def test_amdahls_bound_is_never_broken(draft_length, share, training_efficiency):
    scenario = small(
        speculation__draft_length=draft_length,
        speculation__acceptance_length=1.0 + share * draft_length,
        training={"efficiency": training_efficiency},
    )
    arm = project(scenario).to_json()
    generation = arm["baseline"]["generation_share"]["mean"]
    rollout = arm["rollout_speedup"]["mean"]
    measured = arm["end_to_end_speedup"]["mean"]
    assert measured <= 1.0 / (1.0 - generation + generation / rollout) + 1e-9
    assert measured <= 1.0 / (1.0 - generation)
    assert (measured > 1.0) == (rollout > 1.0)


def test_a_slow_trainer_hides_generation_and_leaves_its_pace_alone():
    slow, fast = (asynchronous(training={"efficiency": share}) for share in (0.004, 0.6))
    assert slow.phases_s["exposed_generation"].mean == pytest.approx(0.0, abs=1e-9)
    assert fast.phases_s["exposed_generation"].mean > 0.5
    assert slow.phases_s["generation"] == fast.phases_s["generation"]


def test_a_lagged_trainer_waits_less_than_generation_takes():
    lagged = asynchronous()
    assert lagged.phases_s["exposed_generation"].mean > 0.0
    assert lagged.phases_s["exposed_generation"].mean < lagged.phases_s["generation"].mean


def test_a_synchronous_trainer_waits_for_all_of_generation():
    phases = project(small(baseline=None)).to_json()["phases_s"]
    assert phases["exposed_generation"] == pytest.approx(phases["generation"], rel=1e-12)


def test_answers_of_one_token_need_no_round_and_gain_nothing():
    projection = project(small(workload__response_length={"kind": "fixed", "tokens": 1}, steps=1))
    assert 0.0 < projection.estimates["rollout_speedup"].mean <= 1.0
    assert "acceptance length" not in projection.facts
