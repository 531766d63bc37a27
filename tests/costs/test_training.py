"""What training takes: closed forms, limits and directions."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.costs.flops import causal_pairs, forward_flops
from simulator.costs.packing import even
from simulator.costs.trainer import Trainer
from simulator.costs.trainer_links import TrainerHardware, exchange_s_per_token, gather_s
from simulator.costs.training import training_cost, update_s_of, without_losses
from simulator.specs.catalog import find_model, find_profile
from simulator.specs.trainer import TrainerParallelism
from simulator.specs.training import Training

H100, GB200 = (TrainerHardware.of(find_profile(name)) for name in ("h100_sxm", "gb200"))
LLAMA, QWEN_30B = find_model("Llama-3.1-8B"), find_model("Qwen3-30B-A3B")
PLAIN = {"efficiency": 1.0, "optimizer_step_s": 0.0}


def trainer(model=LLAMA, hardware=H100, training=None, **ranks):
    settings = Training(**(PLAIN | (training or {})))
    return Trainer(model, hardware, settings, TrainerParallelism(**ranks))


def without_traffic(hardware):
    """Compute alone: no memory traffic, links of infinite rate."""
    device = hardware.device.model_copy(update={"hbm_bytes_per_s": 1e30})
    network = hardware.network.model_copy(
        update={"scale_up_bytes_per_s": 1e30, "scale_out_bytes_per_s": 1e30}
    )
    fit = hardware.fit.model_copy(update={"grouped": 1.0})
    return TrainerHardware(device, network, fit)


def forward_s(hardware, lengths, efficiency):
    matrices = float(forward_flops(LLAMA, lengths.sum(), 0.0, lengths.sum()))
    attention = float(forward_flops(LLAMA, 0.0, causal_pairs(lengths), 0.0))
    peak = hardware.device.peak_flops_per_s["bf16"]
    return matrices / (peak * efficiency), attention / (peak * hardware.fit.attention_efficiency)


def test_one_rank_without_traffic_takes_its_flop_over_the_rate():
    """Forward once, backward twice for matrices and 2.5 times for attention."""
    hardware = without_traffic(H100)
    lengths = np.array([700, 3000, 12_000])
    cost = training_cost(trainer(hardware=hardware), lengths)
    matrices, attention = forward_s(hardware, lengths, hardware.fit.matrix_efficiency["bf16"])
    assert cost.logprob_s == pytest.approx(matrices + attention)
    assert cost.training_s == pytest.approx(3.0 * matrices + 3.5 * attention)


def test_a_given_utilisation_replaces_the_coefficients():
    lengths = np.full(64, 1024)
    cost = training_cost(trainer(training={"mfu": 0.5}, data=8), lengths)
    flops = float(forward_flops(LLAMA, lengths.sum(), causal_pairs(lengths), lengths.sum()))
    seconds = flops / (8 * 0.5 * 989e12)
    assert cost.logprob_s == pytest.approx(seconds)
    optimizer_s = trainer(data=8).optimizer_s()
    assert cost.training_s == pytest.approx(3 * seconds + optimizer_s)


@pytest.mark.parametrize("ranks", [{"tensor": 8}, {"context": 4}, {"pipeline": 4}, {"data": 8}])
def test_with_infinite_links_ranks_divide_the_work(ranks):
    """Many equal sequences: no rank is idle, and the bubble is 3 / micro-batches."""
    hardware = without_traffic(H100)
    lengths = np.full(4096, 4096)
    one = training_cost(trainer(hardware=hardware), lengths)
    spread = training_cost(trainer(hardware=hardware, **ranks), lengths)
    gpus = next(iter(ranks.values()))
    assert spread.training_s * gpus == pytest.approx(one.training_s, rel=0.004)


def test_recomputation_adds_a_forward_pass_of_layers_or_of_attention():
    hardware, lengths = without_traffic(H100), np.array([6000, 2000])
    none, selective, full = (
        training_cost(trainer(hardware=hardware, recompute=kind), lengths).training_s
        for kind in ("none", "selective", "full")
    )
    _, attention = forward_s(hardware, lengths, 1.0)
    layers = float(forward_flops(LLAMA, lengths.sum(), 0.0, 0.0))
    rate = 989e12 * hardware.fit.matrix_efficiency["bf16"]
    assert selective - none == pytest.approx(attention)
    assert full - none == pytest.approx(attention + layers / rate)


@pytest.mark.parametrize(("stages", "chunks", "count"), [(4, 1, 8), (8, 4, 16), (2, 1, 1)])
def test_the_bubble_is_stages_less_one_over_chunks_times_micro_batches(stages, chunks, count):
    hardware = without_traffic(H100)
    loads = even(count, 4096, count)
    piped = trainer(hardware=hardware, pipeline=stages, virtual_pipeline=chunks)
    alone = trainer(hardware=hardware)
    assert update_s_of(piped, loads) == pytest.approx(
        update_s_of(alone, loads) / stages * (1 + (stages - 1) / (chunks * count))
    )


def test_the_bubble_vanishes_with_many_micro_batches():
    piped, alone = trainer(pipeline=8), trainer()
    many = even(100_000, 4096, 100_000)
    assert update_s_of(piped, many) * 8 == pytest.approx(update_s_of(alone, many), rel=1e-3)


def test_tensor_ranks_beyond_the_domain_cross_the_network():
    """An all-gather of B over N domains of m: B (m-1)/m near and B (N-1)/N/m far."""
    fit, network = H100.fit, H100.network
    near = 7 / 8 / (network.scale_up_bytes_per_s * fit.scale_up_share)
    far = 3 / 4 / 8 / (network.scale_out_bytes_per_s * fit.scale_out_share)
    assert gather_s(H100, 1e9, 8, 1) == pytest.approx(1e9 * near)
    assert gather_s(H100, 1e9, 32, 1) == pytest.approx(1e9 * (near + far))
    alone = 31 / 32 / (network.scale_out_bytes_per_s * fit.scale_out_share)
    assert gather_s(H100, 1e9, 32, 8) == pytest.approx(1e9 * alone)
    assert gather_s(H100, 1e9, 1, 1) == 0.0


def test_a_token_crosses_to_each_domain_once_however_many_experts_it_has_there():
    network, fit = H100.network, H100.fit
    rate = network.scale_out_bytes_per_s * fit.scale_out_share
    inside = exchange_s_per_token(H100, 4096.0, 8, 8)
    assert inside == pytest.approx(
        4096 * 7 * 7 / 8 / (network.scale_up_bytes_per_s * fit.exchange_share)
    )
    across = exchange_s_per_token(H100, 4096.0, 1_000_000, 32)
    copies = 31 * 31 / 32 / (network.scale_up_bytes_per_s * fit.exchange_share)
    assert across == pytest.approx(4096 * (copies + 3 / rate))
    assert exchange_s_per_token(GB200, 4096.0, 8, 32) < exchange_s_per_token(H100, 4096.0, 8, 32)


def test_experts_launched_one_by_one_cost_more_and_fewer_local_ones_less():
    lengths = np.full(64, 4096)
    looped, fused = (
        training_cost(
            trainer(QWEN_30B, GB200, {"expert_kernels": kind}, expert=8, data=8), lengths
        ).training_s
        for kind in ("looped", "fused")
    )
    assert looped > fused
    few = trainer(QWEN_30B, GB200, expert=32, data=32).forward().micro_batch_s
    many = trainer(QWEN_30B, GB200, expert=8, data=8).forward().micro_batch_s
    fit = GB200.fit
    assert many - few == pytest.approx(48 * 12 * fit.expert_launch_s.looped / 3)


def test_ranks_wait_for_the_one_with_the_longest_sequence():
    equal = training_cost(trainer(data=8), np.full(64, 2000))
    skewed = training_cost(trainer(data=8), np.array([64_000] + [1016] * 63))
    assert skewed.training_s > 2.0 * equal.training_s


def test_long_sequences_cost_more_than_their_tokens():
    equal = training_cost(trainer(), np.full(8, 8000))
    uneven = training_cost(trainer(), np.array([1000] * 4 + [15_000] * 4))
    assert uneven.training_s > equal.training_s


def test_efficiency_scales_passes_and_not_the_optimizer():
    lengths = np.full(32, 2048)
    full = training_cost(trainer(), lengths)
    half = training_cost(trainer(training={"efficiency": 0.5, "optimizer_step_s": 1.0}), lengths)
    optimizer_s = trainer().optimizer_s()
    assert half.logprob_s == pytest.approx(2 * full.logprob_s)
    assert half.training_s == pytest.approx(2 * (full.training_s - optimizer_s) + optimizer_s + 1)
    again = without_losses(trainer(training={"efficiency": 0.5, "optimizer_step_s": 1.0}))
    assert training_cost(again, lengths).training_s == pytest.approx(full.training_s)


def test_more_passes_and_mini_batches_cost_more():
    lengths = np.random.default_rng(2).integers(100, 8000, 256)
    base = training_cost(trainer(data=8), lengths)
    two = training_cost(trainer(training={"logprob_passes": 2}, data=8), lengths)
    many = training_cost(trainer(training={"optimizer_steps": 16}, data=8), lengths)
    assert two.logprob_s == pytest.approx(2 * base.logprob_s)
    assert many.training_s > base.training_s
    assert many.logprob_s == pytest.approx(base.logprob_s)
    assert training_cost(trainer(training={"logprob_passes": 0}), lengths).logprob_s == 0.0


def test_a_faster_part_never_makes_training_slower():
    lengths = np.random.default_rng(3).integers(100, 8000, 128)
    base = trainer(QWEN_30B, H100, expert=16, data=16)
    before = training_cost(base, lengths).training_s
    for part, name in (
        ("device", "hbm_bytes_per_s"),
        ("network", "scale_up_bytes_per_s"),
        ("network", "scale_out_bytes_per_s"),
    ):
        spec = getattr(H100, part)
        faster = replace(H100, **{part: spec.model_copy(update={name: 2 * getattr(spec, name)})})
        assert training_cost(replace(base, hardware=faster), lengths).training_s < before


def test_scaling_a_block_costs_more_than_scaling_a_tensor():
    tensor, block = (
        training_cost(
            trainer(hardware=GB200, training={"precision": "fp8", "fp8_scaling": scaling}),
            np.full(8, 4096),
        ).training_s
        for scaling in ("tensor", "block")
    )
    assert block > tensor


def test_sharded_weights_are_gathered_in_every_micro_batch():
    """Tiny micro-batches hide nothing: each pays four gathers, less its own computation."""
    many = even(8, 512, 8)
    sharded = trainer(data=64, sharding="full")
    one_s = gather_s(H100, 2.0 * LLAMA.parameters, 64, 1)
    work_s = float(sharded.forward_and_backward().seconds(many).max())
    assert 4 * one_s > work_s / 8
    assert update_s_of(sharded, many) == pytest.approx(8 * 4 * one_s)
    large = even(64, 8192, 8)
    work_s = float(sharded.forward_and_backward().seconds(large).max())
    assert update_s_of(sharded, large) == pytest.approx(work_s + 0.1 * 8 * 4 * one_s)


def test_mtp_layers_are_trained_only_if_asked():
    model = find_model("DeepSeek-V3")
    without, along = (
        training_cost(
            trainer(model, GB200, {"trains_mtp": trained}, expert=64, data=64), np.full(64, 4096)
        ).training_s
        for trained in (False, True)
    )
    assert 1.01 < along / without < 1.06
