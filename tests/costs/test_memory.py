"""What fits on a GPU that generates."""

import pytest

from simulator.costs.drafting import draft_network
from simulator.costs.layers import Target
from simulator.costs.memory import generation_memory
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.engine import Engine
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.speculation import Drafter, Speculation
from simulator.units import GIB

H100, GB200 = find_profile("h100_sxm"), find_profile("gb200")
LLAMA, QWEN_235B = find_model("Llama-3.1-8B"), find_model("Qwen3-235B-A22B")


def memory(model, profile, engine=None, speculation=None, **ranks):
    engine = engine or Engine()
    parallelism = EngineParallelism(**({"tensor": 1} | ranks))
    target = Target(model, profile, parallelism, engine.precision, engine.kv_precision)
    drafter = draft_network(speculation or Speculation(), target, None)
    return generation_memory(target, drafter, engine, 4096.0)


def test_the_kv_cache_of_an_8b_on_one_h100_is_what_vllm_reports():
    """vLLM finds room for about 400,000 tokens: 72 GiB less 15 GiB of weights, 128 KiB a token."""
    budget = memory(LLAMA, H100)
    assert budget.kv_bytes_per_token == pytest.approx(131_072)
    assert budget.weight_bytes == pytest.approx(16.06e9, rel=0.01)
    assert budget.kv_tokens == pytest.approx(420_000, rel=0.1)


def test_experts_are_spread_over_all_ranks_and_attention_is_copied_to_each_replica():
    one = memory(QWEN_235B, GB200, Engine(precision="fp8"), tensor=8, expert=8)
    wide = memory(QWEN_235B, GB200, Engine(precision="fp8"), tensor=1, data=64, expert=64)
    experts = QWEN_235B.expert_weight_bytes("fp8")
    rest = QWEN_235B.weight_bytes("fp8") - experts
    assert one.weight_bytes == pytest.approx((experts + rest) / 8)
    assert wide.weight_bytes == pytest.approx(experts / 64 + rest)
    assert wide.attention_replicas == 64


def test_kv_heads_are_copied_once_there_are_more_ranks_than_heads():
    four, eight, sixteen = (
        memory(QWEN_235B, GB200, Engine(precision="fp8"), tensor=ranks, expert=ranks)
        for ranks in (4, 8, 16)
    )
    assert four.kv_bytes_per_token == pytest.approx(eight.kv_bytes_per_token)
    assert sixteen.kv_bytes_per_token == pytest.approx(eight.kv_bytes_per_token)


def test_an_eagle_head_takes_its_weights_and_a_layer_of_cache():
    speculation = Speculation(
        method="eagle3",
        draft_length=3,
        acceptance_length=2.5,
        drafter=Drafter(tensor_parallel=1),
    )
    plain, drafting = memory(LLAMA, H100), memory(LLAMA, H100, speculation=speculation)
    layer = LLAMA.attention_parameters_per_layer + LLAMA.dense_feedforward_parameters_per_layer
    head = 32_000 * LLAMA.hidden_size
    fusion = 4 * LLAMA.hidden_size**2
    assert drafting.drafter_bytes == pytest.approx(2 * (layer + head + fusion), rel=0.01)
    assert drafting.kv_bytes_per_token == pytest.approx(plain.kv_bytes_per_token * 33 / 32)


def test_what_is_missing_is_told_in_bytes():
    budget = memory(find_model("Llama-3.1-70B"), H100)
    assert budget.kv_cache_bytes < 0
    assert budget.missing_bytes(1000.0) > 50 * GIB
    assert "GiB" in budget.describe()
