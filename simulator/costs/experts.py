"""Seconds of a mixture-of-experts layer on the most loaded rank of its expert-parallel group.

A layer reads only the experts that its tokens touch, so decoding a few tokens is cheap and a verify
pass, with more tokens, is not free even for one sequence. Dispatch and combine between ranks are
priced in ``collectives``; router and shared experts are dense products.
"""

import numpy as np
import numpy.typing as npt

from simulator.costs.operators import ELEMENT_BYTES, PEAK_OF, FloatArray, joined
from simulator.specs.hardware import HardwareProfile, KernelPrecision
from simulator.specs.kernels import MoeFit

_MATRICES = 3.0
"""Gate, up and down projection [1]."""
_ACTIVATION_BYTES = 2.0
_SORTED_TOKENS = 16.0
"""Tokens at which half of the time of sorting many is spent [tokens]."""
_EXTREME = 0.78
"""The largest of ``n`` normal deviates is ``0.78 ln(n)^0.75`` on average, within 6% [1]."""


def moe_s(
    profile: HardwareProfile,
    precision: KernelPrecision,
    tokens: npt.ArrayLike,
    hidden: npt.ArrayLike,
    intermediate: npt.ArrayLike,
    top_k: npt.ArrayLike,
    num_experts: npt.ArrayLike,
    tensor_parallel: npt.ArrayLike,
    expert_parallel: npt.ArrayLike,
) -> FloatArray:
    """Seconds of the routed experts of one layer [s].

    The most loaded rank has ``rows = T K/ep (1 + u 0.78 ln(ep)^0.75 / sqrt(E/ep))``, at most
    ``T min(K, E/ep)`` since no expert sees a token twice: loads of experts with a relative spread
    ``u`` (imbalance) add up on each rank, and the largest of ``ep`` such sums counts.
    ``active = (rows^-s + (E/ep)^-s)^(-1/s)`` of its experts are touched,
    ``t = t0 + t1 T / (T + 16) + d (h + i) + e E/ep + || 6 h (i + I0) (rows + tile active) / (P ec),
    (3 h i w active + 2 (2 h + 3 i) (a rows + g T K)) / (W em) ||_p`` with ``i`` divided by ``tp``.
    The spread of the load is that of the routing in the fitted tables, which is skewed; an
    imbalance of 0 is even routing. ``g`` is what a rank spends on tokens whose experts are
    elsewhere: in the tables, as under tensor-parallel attention, every rank holds all tokens.

    Parameters
    ----------
    tokens
        Tokens of the whole expert-parallel group, any shape; 0 takes no time [tokens].
    intermediate
        Width of a whole expert, before it is split [1].
    tensor_parallel, expert_parallel
        Ways that each expert is split, and that the experts are divided [ranks].
    """
    rate = profile.device.peak_flops_per_s[PEAK_OF[precision]]
    return moe_seconds(
        profile.kernels.moe[precision],
        precision,
        rate,
        profile.device.hbm_bytes_per_s,
        tokens,
        hidden,
        intermediate,
        top_k,
        num_experts,
        tensor_parallel,
        expert_parallel,
    )


def moe_seconds(
    fit: MoeFit,
    precision: KernelPrecision,
    peak_flops_per_s: float,
    bytes_per_s: float,
    tokens: npt.ArrayLike,
    hidden: npt.ArrayLike,
    intermediate: npt.ArrayLike,
    top_k: npt.ArrayLike,
    num_experts: npt.ArrayLike,
    tensor_parallel: npt.ArrayLike,
    expert_parallel: npt.ArrayLike,
) -> FloatArray:
    """The equation of :func:`moe_s` with its coefficients and rates spelt out [s]."""
    count, width, inner, chosen, experts, splits, ranks = (
        np.asarray(value, dtype=np.float64)
        for value in (
            tokens,
            hidden,
            intermediate,
            top_k,
            num_experts,
            tensor_parallel,
            expert_parallel,
        )
    )
    if fit.divided is not None:
        rest = (precision, peak_flops_per_s, bytes_per_s, count, width, inner, chosen, experts)
        return np.where(
            ranks > 1,
            moe_seconds(fit.divided, *rest, splits, ranks),
            moe_seconds(fit.model_copy(update={"divided": None}), *rest, splits, ranks),
        )
    local_experts = experts / ranks
    mean_rows = count * chosen / ranks
    excess = fit.imbalance * _EXTREME * np.log(ranks) ** 0.75 / np.sqrt(local_experts)
    rows = np.minimum(mean_rows * (1.0 + excess), count * np.minimum(chosen, local_experts))
    active = rows / (1.0 + (rows / local_experts) ** fit.spread) ** (1.0 / fit.spread)
    inner = inner / splits
    weight_bytes = _MATRICES * width * inner * ELEMENT_BYTES[precision]
    activation_bytes = _ACTIVATION_BYTES * (2.0 * width + _MATRICES * inner)
    row_flops = 2.0 * _MATRICES * width
    compute_s = row_flops * (inner + fit.prologue_width) * (rows + fit.tile_rows * active)
    handled = fit.activation_traffic * rows + fit.group_traffic * count * chosen
    moved = weight_bytes * active + activation_bytes * handled
    seconds = (
        fit.launch_s
        + fit.sorting_s * count / (count + _SORTED_TOKENS)
        + fit.depth_s * (width + inner)
        + fit.expert_s * local_experts
        + joined(
            fit.norm,
            compute_s / (peak_flops_per_s * fit.compute_efficiency),
            moved / (bytes_per_s * fit.memory_efficiency),
        )
    )
    bound = np.maximum(
        row_flops * inner * mean_rows / peak_flops_per_s, weight_bytes * active / bytes_per_s
    )
    return np.where(count > 0, np.maximum(seconds, bound), 0.0)
