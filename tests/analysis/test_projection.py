"""The answer as an object: exactly the keys of the contract, and what each of them says."""

import pytest

from simulator.analysis.projection import project
from tests.small_scenario import small

ESTIMATES = (
    "step_time_s",
    "tokens_per_s_per_gpu",
    "generation_share",
    "mean_response_tokens",
    "mean_policy_lag",
)
SPEEDUPS = ("rollout_speedup", "end_to_end_speedup")
PHASES = ("data", "prepare", "generation", "exposed_generation", "reward", "logprob", "training")
CONTRACT = {"scenario", "seeds", "phases_s", "baseline", *ESTIMATES, *SPEEDUPS}
BEYOND_THE_CONTRACT = {"warnings", "facts"}


def answer(**changes):
    return project(small(**changes)).to_json()


@pytest.fixture(scope="module")
def compared():
    return answer()


@pytest.fixture(scope="module")
def alone():
    return answer(baseline=None)


def test_the_keys_are_those_of_the_contract(compared, alone):
    for arm in (compared, compared["baseline"], alone):
        assert set(arm) == CONTRACT | BEYOND_THE_CONTRACT
        assert set(arm["phases_s"]) == set(PHASES)
    assert compared["scenario"] == "small"
    assert compared["seeds"] == 2


def test_every_estimate_is_a_mean_inside_its_interval(compared):
    for arm in (compared, compared["baseline"]):
        estimates = [arm[name] for name in ESTIMATES] + list(arm["phases_s"].values())
        if arm is compared:
            estimates += [arm[name] for name in SPEEDUPS]
        for estimate in estimates:
            assert set(estimate) == {"mean", "low", "high"}
            assert all(type(value) is float for value in estimate.values())
            assert estimate["low"] <= estimate["mean"] <= estimate["high"]
    assert compared["step_time_s"]["low"] < compared["step_time_s"]["high"]


def test_speedups_and_baseline_are_null_without_a_baseline(compared, alone):
    for arm in (alone, compared["baseline"]):
        assert [arm[name] for name in SPEEDUPS] == [None, None]
        assert arm["baseline"] is None


def test_a_baseline_does_not_change_the_scenario(compared, alone):
    shared = set(compared) - {"baseline", *SPEEDUPS}
    assert {key: compared[key] for key in shared} == {key: alone[key] for key in shared}


def test_the_baseline_is_the_projection_of_the_changed_scenario(compared):
    assert compared["baseline"] == answer(speculation__method="none", baseline=None)


def test_speedups_are_baseline_over_scenario(compared):
    base = compared["baseline"]
    for speedup, above, below in (
        ("end_to_end_speedup", base["step_time_s"], compared["step_time_s"]),
        ("rollout_speedup", base["phases_s"]["generation"], compared["phases_s"]["generation"]),
    ):
        assert compared[speedup]["mean"] == pytest.approx(above["mean"] / below["mean"], rel=1e-12)


def test_progress_counts_the_replications_of_both_arms():
    seen = []
    project(small(steps=1, seeds=3), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(1, 7)]


def test_one_step_of_one_seed_tells_nothing_about_chance_and_says_so():
    arm = answer(steps=1, seeds=1, baseline=None)
    assert arm["mean_response_tokens"]["low"] == arm["mean_response_tokens"]["high"]
    assert len(arm["warnings"]) == 1
    assert "chance in the interval is missing" in arm["warnings"][0]
    assert answer(baseline=None)["warnings"] == []
