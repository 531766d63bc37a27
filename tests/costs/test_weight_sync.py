"""What handing over weights takes, in both placements."""

import pytest

from simulator.costs.layers import Target
from simulator.costs.trainer_links import TrainerHardware, gather_s
from simulator.costs.weight_sync import tensor_count, weight_sync
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.pipeline import Pipeline

H100, LLAMA = find_profile("h100_sxm"), find_model("Llama-3.1-8B")
TARGET = Target(LLAMA, H100, EngineParallelism(tensor=2), "bf16", "bf16")
BYTES = LLAMA.weight_bytes("bf16")


def sync(placement="colocated", software="measured", target=TARGET, **settings):
    return weight_sync(target, Pipeline(placement=placement, weight_sync=settings), software)


def test_colocated_ranks_gather_whole_tensors_and_the_engine_takes_them_apart():
    near = sync()
    assert near.total_s == pytest.approx(1.5 + BYTES / 2.04e10)
    fast = sync(load_bytes_per_s=1e15)
    assert fast.transfer_s == pytest.approx(gather_s(TrainerHardware.of(H100), BYTES, 2, 1))


def test_a_single_sender_passes_the_whole_model_and_a_pull_only_a_shard():
    assert sync("disaggregated").transfer_s == pytest.approx(BYTES / 1.46e10)
    pull = sync("disaggregated", transfer="pull")
    assert pull.transfer_s == pytest.approx(BYTES / 2 / (0.58 * 50e9), rel=0.1)
    assert pull.transfer_s < sync("disaggregated").transfer_s


def test_more_engine_ranks_help_a_pull_and_not_a_sender():
    wide = Target(LLAMA, H100, EngineParallelism(tensor=8), "bf16", "bf16")
    two, eight = (
        sync("disaggregated", transfer="pull", target=target).transfer_s
        for target in (TARGET, wide)
    )
    assert eight == pytest.approx(two / 4, rel=0.1)
    assert sync("disaggregated", target=wide).transfer_s == sync("disaggregated").transfer_s


def test_without_buckets_every_tensor_is_a_call():
    calls = sync(is_bucketed=False).call_s
    assert calls == pytest.approx(tensor_count(LLAMA) * 5e-4)
    assert sync().call_s == 0.0


def test_tensors_of_a_dense_model_are_nine_a_layer_and_three():
    assert tensor_count(LLAMA) == 32 * 9 + 3


def test_a_stated_rate_and_ideal_software_move_each_gpu_its_shard():
    shard = sync("disaggregated", bytes_per_s=1e9).transfer_s * 1e9
    assert shard == pytest.approx(BYTES / 2, rel=0.1)
    assert sync("disaggregated", "ideal").transfer_s == pytest.approx(shard / 50e9)
    assert sync("colocated", "ideal").transfer_s == pytest.approx(shard / 450e9)
    assert sync(pause_s=4.0).pause_s == 4.0
