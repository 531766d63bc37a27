"""No variance, one replica, no limits: the answer equals a sum that is written out here."""

import numpy as np
import pytest

from simulator.analysis.projection import project
from simulator.costs.drafting import draft_network
from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import Target
from simulator.costs.training import training_cost
from simulator.costs.weight_sync import weight_sync
from simulator.pipeline.trainer import choose_trainer
from simulator.specs.catalog import find_model, find_profile, resolve
from simulator.specs.parallelism import EngineParallelism
from tests.small_scenario import small

MODEL, PROFILE = find_model("Qwen3-8B"), find_profile("gb200")

PROMPTS, SAMPLES, PROMPT_TOKENS = 2, 4, 100
ROLLOUTS = PROMPTS * SAMPLES

PLAN_RESOLUTION = 1e-4
"""A plan prices all rounds at two contexts, exact for a cubic price; the sum does each one [1]."""

PLAIN = {"method": "none"}
ALL_OF_THREE = {"method": "eagle3", "draft_length": 3, "acceptance_length": 4.0}
TWO_OF_THREE = {"method": "eagle3", "draft_length": 3, "acceptance_rates": [1.0, 1.0, 0.0]}
ONE_OF_TWO = {"method": "ngram", "draft_length": 2, "acceptance_rates": [1.0, 0.0]}
TOKENS_A_ROUND = [(PLAIN, 1), (ALL_OF_THREE, 4), (TWO_OF_THREE, 3), (ONE_OF_TWO, 2)]
NAMES = ["plain", "all of three", "two of three", "one of two"]


def even(gpus=1, response_tokens=481, speculation=PLAIN, **changes):
    """One instance and rollouts that are all alike."""
    return small(
        cluster={"gpus": gpus, "hardware": "gb200"},
        engine={"tensor_parallel": gpus},
        workload={
            "prompts_per_step": PROMPTS,
            "samples_per_prompt": SAMPLES,
            "prompt_length": {"kind": "fixed", "tokens": PROMPT_TOKENS},
            "response_length": {"kind": "fixed", "tokens": response_tokens},
            "max_response_tokens": 4096,
        },
        speculation=speculation,
        steps=2,
        seeds=1,
        baseline=None,
        **changes,
    )


def prices(scenario):
    """The instance and its prices, built from the cost models alone."""
    ranks = scenario.cluster.gpus
    parallelism = EngineParallelism(tensor=ranks, drafter_tensor=ranks)
    target = Target(MODEL, PROFILE, parallelism, "bf16", "bf16")
    return GenerationCosts(
        target=target,
        method=scenario.speculation.method,
        draft_length=scenario.speculation.active_draft_length,
        drafter=draft_network(scenario.speculation, target, None),
        software=PROFILE.software,
        captured_tokens=PROFILE.software.captured_tokens,
    )


def one_by_one_s(costs, response_tokens, tokens_a_round):
    """Seconds of a batch, iteration by iteration: the prompts, then round after round."""

    def seconds(*shape):
        arrays = [np.array([float(value)]) for value in shape]
        return float(costs.round_cost(*arrays).total_s[0])

    shared = PROMPTS * sum(range(1, PROMPT_TOKENS + 1))
    cached = PROMPTS * (SAMPLES - 1)
    total_s = seconds(0, 0, PROMPTS * PROMPT_TOKENS + cached, shared + cached * (PROMPT_TOKENS + 1))
    written = 1
    while written < response_tokens:
        total_s += seconds(ROLLOUTS, PROMPT_TOKENS + written)
        written += tokens_a_round
    return total_s


@pytest.mark.parametrize("gpus", [1, 4])
@pytest.mark.parametrize(("speculation", "tokens_a_round"), TOKENS_A_ROUND, ids=NAMES)
def test_generation_is_the_sum_over_its_iterations(gpus, speculation, tokens_a_round):
    scenario = even(gpus, 481, speculation)
    expected_s = one_by_one_s(prices(scenario), 481, tokens_a_round)
    generation_s = project(scenario).phases_s["generation"].mean
    assert generation_s == pytest.approx(expected_s, rel=PLAN_RESOLUTION)


@pytest.mark.parametrize("decode_tokens", [480, 481, 482, 483])
@pytest.mark.parametrize(("speculation", "tokens_a_round"), TOKENS_A_ROUND, ids=NAMES)
def test_rounds_suffice_for_every_token(decode_tokens, speculation, tokens_a_round):
    rollouts = project(even(4, decode_tokens + 1, speculation)).tables["rollouts"]
    assert set(rollouts["response_tokens"]) == {decode_tokens + 1}
    assert set(rollouts["rounds"]) == {-(-decode_tokens // tokens_a_round)}


@pytest.mark.parametrize("gpus", [1, 4])
@pytest.mark.parametrize("speculation", [PLAIN, TWO_OF_THREE], ids=["plain", "two of three"])
def test_the_step_is_the_sum_of_its_stages(gpus, speculation):
    scenario = even(
        gpus,
        speculation=speculation,
        pipeline={"data_s": 0.4, "reward_s": 0.9, "weight_sync": {"pause_s": 2.5}},
        training={"logprob_passes": 2, "optimizer_steps": 3, "recompute": "full"},
    )
    costs = prices(scenario)
    trainer = training_cost(
        choose_trainer(resolve(scenario)), np.full(ROLLOUTS, PROMPT_TOKENS + 481)
    )
    sync = weight_sync(costs.target, scenario.pipeline, scenario.engine.software)
    expected = {
        "data": 0.4,
        "prepare": sync.total_s,
        "reward": 0.9,
        "logprob": trainer.logprob_s,
        "training": trainer.training_s,
    }
    projection = project(scenario)
    phases = {name: value.mean for name, value in projection.phases_s.items()}
    generation_s = phases.pop("generation")
    assert phases.pop("exposed_generation") == pytest.approx(generation_s, rel=1e-12)
    assert phases == pytest.approx(expected, rel=1e-9)
    step = projection.estimates["step_time_s"]
    assert step.mean == pytest.approx(sum(expected.values()) + generation_s, rel=1e-9)
    # Without chance, the interval holds the error of the cost models alone.
    assert step.high * step.low == pytest.approx(step.mean**2, rel=1e-9)


def test_several_instances_take_as_long_as_one_with_its_share():
    one = even(1)
    four = one.model_copy(
        update={
            "cluster": one.cluster.model_copy(update={"gpus": 4}),
            "workload": one.workload.model_copy(update={"prompts_per_step": 4 * PROMPTS}),
        }
    )
    once, fourfold = (project(scenario).to_json() for scenario in (one, four))
    for answer in (once, fourfold):
        answer["generation_s"] = answer["phases_s"]["generation"]
    for key in ("generation_s", "mean_response_tokens"):
        assert fourfold[key]["mean"] == pytest.approx(once[key]["mean"], rel=1e-6)
