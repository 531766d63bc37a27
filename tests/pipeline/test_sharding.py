"""What ``auto`` picks is no slower than what it could have picked."""

import pytest

from simulator.analysis.projection import project
from simulator.specs.load import load_scenario


def plain_generation_s(*overrides):
    scenario = load_scenario("qwen3-235b-sync-512", [*overrides, "steps=3"])
    plain = scenario.model_copy(
        update={"baseline": None, "speculation": type(scenario.speculation)()}
    )
    return project(plain).phases_s["generation"].mean


@pytest.mark.slow
@pytest.mark.parametrize("other", [(4, 16, 64), (16, 1, 16), (8, 1, 8), (4, 4, 16)])
@pytest.mark.parametrize("setting", ["cluster.gpus=2048", "engine.precision=fp4"])
def test_auto_generates_no_slower_than_a_sharding_that_is_named(other, setting):
    tensor, data, expert = other
    named = plain_generation_s(
        setting,
        f"engine.tensor_parallel={tensor}",
        f"engine.data_parallel={data}",
        f"engine.expert_parallel={expert}",
    )
    # Both see the draws of seed 0; auto decided on another step's draws.
    assert plain_generation_s(setting) <= named * 1.02
