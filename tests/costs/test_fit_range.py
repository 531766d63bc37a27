"""Sentences about loads that leave what was measured."""

import pytest

from simulator.costs.fit_range import LargestLoad, departures
from simulator.costs.layers import Target
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.parallelism import EngineParallelism

GB200 = find_profile("gb200")
QWEN_8B = find_model("Qwen3-8B")
QWEN_235B = find_model("Qwen3-235B-A22B")


def target(model, **ranks):
    return Target(model, GB200, EngineParallelism(**({"tensor": 1} | ranks)), "bf16", "bf16")


def load(**changes):
    usual = {
        "sequences": 64.0,
        "query_tokens": 1,
        "batched_tokens": 8192.0,
        "context_tokens": 4000.0,
        "prompt_tokens": 500.0,
    }
    return LargestLoad(**(usual | changes))


def test_a_usual_load_is_inside():
    assert departures(target(QWEN_8B), load()) == ()
    assert departures(target(QWEN_235B, tensor=4, expert=4), load()) == ()


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"context_tokens": 300_000.0}, ["attention over the cache", "step 300,000", "131,071"]),
        ({"sequences": 5_000.0}, ["batch_size 5,000", "2,048"]),
        ({"sequences": 2_000.0, "query_tokens": 20}, ["matrix products", "m 40,000", "32,768"]),
        ({"prompt_tokens": 50_000.0}, ["attention of prompts", "isl 50,000"]),
    ],
)
def test_each_departure_names_kernel_value_and_range(changes, fragments):
    (sentence,) = departures(target(QWEN_8B), load(**changes))
    for fragment in fragments:
        assert fragment in sentence


def test_ranks_beyond_the_measured_collectives_are_told():
    (sentence,) = departures(target(QWEN_8B, tensor=32), load())
    assert "all-reduce: ranks 32" in sentence
    found = departures(target(QWEN_235B, tensor=1, data=64, expert=64), load(sequences=4096.0))
    assert any("expert exchange: ranks 64" in sentence for sentence in found)


def test_experts_that_were_not_measured_are_told():
    experts = QWEN_235B.experts.model_copy(update={"num_experts": 1024, "experts_per_token": 24})
    model = QWEN_235B.model_copy(update={"experts": experts})
    found = " ".join(departures(target(model, tensor=4, expert=4), load()))
    assert "topk 24" in found
    assert "num_experts 1,024" in found
