"""Seconds of a trainer's collectives over the links that carry them.

Ranks lie as Megatron lays them: tensor, context, data, and pipeline stages outermost, so a group
of ``ranks`` with ``stride`` GPUs between neighbours fills NVLink domains first.
"""

from dataclasses import dataclass

from simulator.specs.hardware import Device, HardwareProfile, Network
from simulator.specs.training_fit import TrainingFit


@dataclass(frozen=True, slots=True)
class TrainerHardware:
    """The part of a hardware profile that training needs."""

    device: Device
    network: Network
    fit: TrainingFit

    @classmethod
    def of(cls, profile: HardwareProfile) -> "TrainerHardware":
        """That part of a profile."""
        return cls(profile.device, profile.network, profile.training)


def gather_s(hardware: TrainerHardware, num_bytes: float, ranks: int, stride: int) -> float:
    """Seconds of an all-gather to, or a reduce-scatter from, ``num_bytes`` on every rank [s].

    ``B (m - 1) / m / nvlink + B / m (N - 1) / N / network`` for ``N`` domains of ``m`` ranks: a
    rank moves its domain's share across the network and the rest inside, as NCCL's trees do.
    """
    if ranks <= 1:
        return 0.0
    network, fit = hardware.network, hardware.fit
    inside = min(max(network.scale_up_gpus // stride, 1), ranks)
    domains = ranks / inside
    near = (inside - 1) / inside / (network.scale_up_bytes_per_s * fit.scale_up_share)
    far = (domains - 1) / domains / inside / (network.scale_out_bytes_per_s * fit.scale_out_share)
    return num_bytes * (near + far)


def exchange_s_per_token(
    hardware: TrainerHardware, token_bytes: float, experts_per_token: int, ranks: int
) -> float:
    """Seconds of sending one token of a rank to its experts, or of bringing it back [s].

    Inside a domain a token goes to ``min(K, n - 1) (n - 1) / n`` ranks. To each of the other
    ``N - 1`` domains it crosses the network once if any of its experts is there, which even
    routing makes ``(N - 1)(1 - (1 - 1/N)^K)`` crossings (DeepEP, Hybrid-EP).
    """
    if ranks <= 1:
        return 0.0
    network, fit = hardware.network, hardware.fit
    copies = min(experts_per_token, ranks - 1) * (ranks - 1) / ranks
    seconds = token_bytes * copies / (network.scale_up_bytes_per_s * fit.exchange_share)
    domains = ranks / min(network.scale_up_gpus, ranks)
    crossings = (domains - 1.0) * (1.0 - (1.0 - 1.0 / domains) ** experts_per_token)
    rate = network.scale_out_bytes_per_s * fit.scale_out_share
    return seconds + token_bytes * crossings / rate
