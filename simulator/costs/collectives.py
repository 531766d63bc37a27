"""Seconds of messages between GPUs: all-reduce, and the exchange of tokens among expert ranks.

Measured inside one NVLink domain for a few numbers of ranks, and extended by two stated laws:
latency grows with the logarithm of the ranks, and beyond the domain the bytes also cross the
network. Arrays broadcast; one rank takes no time.
"""

import math

import numpy as np
import numpy.typing as npt

from simulator.costs.operators import FloatArray, joined
from simulator.specs.hardware import HardwareProfile
from simulator.specs.kernels import CollectiveFit, ExchangeFit


def all_reduce_s(profile: HardwareProfile, num_bytes: npt.ArrayLike, ranks: int) -> FloatArray:
    """Seconds of an all-reduce [s].

    ``t = t0 + bytes / rate + r sqrt(bytes)`` for measured ranks. Between them the next larger one
    counts; above, ``t0`` grows with ``log2(ranks)`` and the bytes with ``(n - 1) / n`` (ring).
    Beyond the NVLink domain each GPU also reduces its share of the bytes over the network.

    Parameters
    ----------
    num_bytes
        Size of the reduced message, any shape [bytes].
    """
    size = np.asarray(num_bytes, dtype=np.float64)
    if ranks <= 1:
        return np.zeros_like(size)
    network = profile.network
    inside = min(ranks, network.scale_up_gpus)
    fit = measured_ranks(profile, inside)
    extension = _Extension(fit.ranks, inside)
    seconds = all_reduce_seconds(fit, size, extension.latency, extension.ring)
    domains = math.ceil(ranks / network.scale_up_gpus)
    if domains > 1:
        share = size / inside
        across = 2.0 * (domains - 1) / domains * share / network.scale_out_bytes_per_s
        seconds = seconds + across + math.ceil(math.log2(domains)) * network.scale_out_latency_s
    return np.where(size > 0, seconds, 0.0)


def all_reduce_seconds(
    fit: CollectiveFit, num_bytes: npt.ArrayLike, latency: float = 1.0, ring: float = 1.0
) -> FloatArray:
    """The equation of :func:`all_reduce_s` with its coefficients spelt out [s]."""
    size = np.asarray(num_bytes, dtype=np.float64)
    return np.asarray(
        latency * fit.launch_s + ring * size / fit.bytes_per_s + fit.root_s * np.sqrt(size)
    )


class _Extension:
    """How much more than the measured ranks another number of ranks costs, never less."""

    def __init__(self, measured: int, ranks: int) -> None:
        larger = max(ranks, measured)
        self.latency = math.log2(larger) / math.log2(measured)
        self.ring = ((larger - 1) / larger) / ((measured - 1) / measured)


def measured_ranks(profile: HardwareProfile, ranks: int) -> CollectiveFit:
    """The fitted all-reduce that stands for this number of ranks: the next larger, or the last."""
    fits = profile.kernels.all_reduce
    return next((fit for fit in fits if fit.ranks >= ranks), fits[-1])


def moe_all_to_all_s(
    profile: HardwareProfile,
    tokens_per_rank: npt.ArrayLike,
    hidden: float,
    top_k: float,
    ranks: int,
    bytes_per_value: float,
) -> FloatArray:
    """Seconds of sending tokens to their experts and results back [s].

    ``t = || t0 + t1 (log2(n) - 1), B / rate + r sqrt(B) ||_p`` with ``B = 2 T min(K, n - 1) h w``:
    a token goes to at most ``K`` other ranks. Beyond the NVLink domain the share of the traffic
    that leaves it moves at the network's rate, and its latency counts twice.

    Parameters
    ----------
    tokens_per_rank
        Tokens that one rank sends out, any shape [tokens].
    bytes_per_value
        Mean bytes of a value over both directions [bytes].
    """
    tokens = np.asarray(tokens_per_rank, dtype=np.float64)
    if ranks <= 1:
        return np.zeros_like(tokens)
    fit = profile.kernels.expert_exchange
    network = profile.network
    copies = min(top_k, ranks - 1)
    moved = 2.0 * tokens * copies * hidden * bytes_per_value
    seconds = exchange_seconds(fit, moved, ranks)
    if ranks > network.scale_up_gpus:
        leaving = 1.0 - network.scale_up_gpus / ranks
        seconds = seconds + leaving * moved / network.scale_out_bytes_per_s
        seconds = seconds + 2.0 * network.scale_out_latency_s
    return np.where(tokens > 0, seconds, 0.0)


def exchange_seconds(
    fit: ExchangeFit, num_bytes: npt.ArrayLike, ranks: npt.ArrayLike
) -> FloatArray:
    """The equation of :func:`moe_all_to_all_s` inside a domain, coefficients spelt out [s]."""
    doublings = np.log2(np.asarray(ranks, dtype=np.float64))
    latency_s = fit.launch_s + fit.rank_s * np.maximum(doublings - 1.0, 0.0)
    size = np.asarray(num_bytes, dtype=np.float64)
    return joined(fit.norm, latency_s, size / fit.bytes_per_s + fit.root_s * np.sqrt(size))
