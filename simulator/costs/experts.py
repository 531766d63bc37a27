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

    ``rows = T min(K/ep + u (1 - 1/ep), K, E/ep)``: a fair share, and on top the hottest experts,
    which a share ``u`` (imbalance) of all tokens visits; no expert sees a token twice.
    ``active = E/ep (1 - exp(-(rows / (E/ep))^spread))``,
    ``t = t0 + || 6 h i (rows + tile active) / (P ec),
    (3 h i w active + a rows (2 h + 3 i) 2) / (W em), c active ||_p``. For uniform routing and a
    spread of 1, ``active`` is the expected number of touched experts. The law of the load is that
    of the routing in the fitted tables, which is skewed; an imbalance of 0 is even routing.

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
    local_experts = experts / ranks
    mean_rows = count * chosen / ranks
    load = chosen / ranks + fit.imbalance * (1.0 - 1.0 / ranks)
    rows = count * np.minimum(load, np.minimum(chosen, local_experts))
    active = local_experts * -np.expm1(-((rows / local_experts) ** fit.spread))
    inner = inner / splits
    weight_bytes = _MATRICES * width * inner * ELEMENT_BYTES[precision]
    activation_bytes = _ACTIVATION_BYTES * (2.0 * width + _MATRICES * inner)
    flops_per_row = 2.0 * _MATRICES * width * inner
    seconds = fit.launch_s + joined(
        fit.norm,
        flops_per_row
        * (rows + fit.tile_rows * active)
        / (peak_flops_per_s * fit.compute_efficiency),
        (weight_bytes * active + fit.activation_traffic * activation_bytes * rows)
        / (bytes_per_s * fit.memory_efficiency),
        fit.expert_s * active,
    )
    bound = np.maximum(
        flops_per_row * mean_rows / peak_flops_per_s, weight_bytes * active / bytes_per_s
    )
    return np.where(count > 0, np.maximum(seconds, bound), 0.0)
