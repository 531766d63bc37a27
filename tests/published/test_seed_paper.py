"""The published speedups of arXiv 2604.26779, and that everything that is shipped can be run."""

import pytest

from simulator.analysis.projection import project
from simulator.pipeline.run import Runner
from simulator.pipeline.trainer import choose_trainer
from simulator.specs.catalog import resolve, scenario_names
from simulator.specs.load import baseline_of, load_scenario

SYNCHRONOUS = "qwen3-235b-sync-512"
ASYNCHRONOUS = "qwen3-235b-async-2048"

ROLLOUT_SPEEDUP = 2.72
END_TO_END_SPEEDUP = 1.70
"""Figure 3 of the paper: 512 GB200, k = 3, acceptance length 3 [1]."""


def speedups(reference, *overrides):
    return project(load_scenario(reference, overrides)).to_json()


def assert_published(arm):
    assert arm["rollout_speedup"]["mean"] == pytest.approx(ROLLOUT_SPEEDUP, rel=0.1)
    assert arm["end_to_end_speedup"]["mean"] == pytest.approx(END_TO_END_SPEEDUP, rel=0.1)


def test_two_steps_on_512_gpus_already_come_near_the_published_speedups():
    assert_published(speedups(SYNCHRONOUS, "steps=2"))


@pytest.mark.slow
def test_the_shipped_512_gpu_scenario_comes_near_the_published_speedups():
    assert_published(speedups(SYNCHRONOUS))


@pytest.mark.slow
def test_the_asynchronous_scenario_saves_more_and_no_more_than_it_can():
    """With a lag, hidden generation saves too: the bound is that of instant generation (S10)."""
    synchronous, arm = speedups(SYNCHRONOUS), speedups(ASYNCHRONOUS)
    share = arm["baseline"]["generation_share"]["mean"]
    assert arm["rollout_speedup"]["mean"] > synchronous["rollout_speedup"]["mean"]
    assert 1.0 < arm["end_to_end_speedup"]["mean"] <= 1.0 / (1.0 - share) + 1e-9
    assert arm["mean_policy_lag"]["high"] <= 2.0


def test_the_scenarios_of_the_paper_are_shipped():
    assert {SYNCHRONOUS, ASYNCHRONOUS, "qwen3-8b-rl-zero", "qwen3-8b-rl-think"} <= set(
        scenario_names()
    )


@pytest.mark.parametrize("name", scenario_names())
def test_a_shipped_scenario_names_what_exists_and_can_be_trained(name):
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.description
    for arm in (scenario, baseline_of(scenario)):
        if arm is not None:
            resolved = resolve(arm)
            assert resolved.profile.name == arm.cluster.hardware
            assert choose_trainer(resolved).ranks


@pytest.mark.parametrize("name", ["qwen3-8b-rl-zero", "qwen3-8b-rl-think"])
def test_a_shipped_8b_scenario_fits_with_and_without_speculation(name):
    scenario = load_scenario(name)
    for arm in (scenario, baseline_of(scenario)):
        placement = Runner(resolve(arm)).placement
        assert placement.parallelism.gpus * placement.replicas == 32
        assert placement.memory.kv_tokens > 128 * scenario.workload.response_length.mean_tokens()
