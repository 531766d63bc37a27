"""Accounts that close: seconds, tokens and rollouts go in and come out once."""

import numpy as np
import pytest

from simulator.analysis.projection import project
from tests.small_scenario import small

LAGGED = {"placement": "disaggregated", "max_policy_lag": 2}


def asynchronous(**changes):
    return project(small(pipeline=LAGGED, steps=6, seeds=1, baseline=None, **changes))


@pytest.mark.parametrize("pipeline", [{}, LAGGED], ids=["synchronous", "asynchronous"])
def test_phases_add_up_to_the_step(pipeline):
    scenario = small(pipeline={**pipeline, "reward_s": 0.7}, steps=6, baseline=None)
    arm = project(scenario).to_json()
    phases = {name: value["mean"] for name, value in arm["phases_s"].items()}
    del phases["generation"]
    assert sum(phases.values()) == pytest.approx(arm["step_time_s"]["mean"], rel=1e-12)
    assert arm["generation_share"]["mean"] == pytest.approx(
        phases["exposed_generation"] / arm["step_time_s"]["mean"], rel=1e-12
    )


@pytest.mark.parametrize("slots", [4, 1024], ids=["queueing", "all at once"])
def test_every_trained_rollout_appears_once_with_a_lag_in_its_bound(slots):
    rollouts = asynchronous(engine__max_num_seqs=slots).tables["rollouts"]
    trained = rollouts[["seed", "step", "rollout"]]
    assert len(trained) == 6 * 32
    assert not trained.duplicated().any()
    assert trained.nunique().tolist() == [1, 6, 32]
    assert not rollouts.isna().to_numpy().any()
    assert rollouts["policy_lag_steps"].between(0, 2).all()
    assert (rollouts["started_s"] < rollouts["completed_s"]).all()


def test_mean_policy_lag_is_that_of_the_rollouts():
    queueing = asynchronous(engine__max_num_seqs=4)
    lags = queueing.tables["rollouts"]["policy_lag_steps"]
    assert lags.nunique() > 1
    assert queueing.to_json()["mean_policy_lag"]["mean"] == pytest.approx(lags.mean(), rel=1e-12)
    assert lags.mean() < 2.0
    assert asynchronous().to_json()["mean_policy_lag"]["mean"] == pytest.approx(2.0)


@pytest.mark.parametrize("pipeline", [{}, LAGGED], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("steps", [6, 7])
def test_tokens_out_are_tokens_in(pipeline, steps):
    projection = project(small(pipeline=pipeline, steps=steps, baseline=None))
    arm = projection.to_json()
    rollouts = projection.tables["rollouts"]
    tokens = rollouts["response_tokens"].sum()
    throughput, step_s = arm["tokens_per_s_per_gpu"]["mean"], arm["step_time_s"]["mean"]
    assert throughput * step_s * 4 * steps * 2 == pytest.approx(tokens, rel=1e-12)
    assert arm["mean_response_tokens"]["mean"] == pytest.approx(tokens / len(rollouts), rel=1e-12)


@pytest.mark.parametrize("steps", [6, 7])
def test_the_mean_step_is_that_of_the_table(steps):
    projection = project(small(pipeline=LAGGED, steps=steps, baseline=None))
    mean_s = projection.tables["steps"]["step_time_s"].mean()
    assert projection.to_json()["step_time_s"]["mean"] == pytest.approx(mean_s, rel=1e-12)


def test_response_lengths_are_those_of_the_baseline_and_of_every_step():
    projection = project(small())
    own = projection.tables["rollouts"]
    base = projection.baseline.tables["rollouts"]
    assert np.array_equal(own["response_tokens"], base["response_tokens"])
    assert (own["rounds"] <= base["rounds"]).all()
    assert own.groupby("step")["response_tokens"].sum().nunique() == 3
