"""The standard deviation that a projection of one forward pass states, from fitted rows only.

Each kind of kernel carries the error of its fit on held-out shapes. Within one pass it strikes
all layers alike, while kinds err independently, so a pass has the log standard deviation
``sqrt(sum_k (share_k sigma_k)^2)`` with the share of each kind in its seconds. A kind's ``sigma``
is its 90th percentile on held-out shapes over that of a normal law.
"""

import numpy as np

from simulator.costs.collectives import measured_ranks
from simulator.costs.iteration import IterationShape, forward_pass
from simulator.costs.layers import FloatArray, Target
from simulator.specs.kernels import Provenance
from simulator.specs.model import GroupedQueryAttention

_P90_OF_NORMAL = 1.645
"""90th percentile of the absolute value of a standard normal variate [1]."""
_LEAST_SPREAD = 0.01


def log_spread(logs: FloatArray) -> float:
    """Root mean square of log(measured / modelled), with a floor [1]."""
    return max(float(np.sqrt(np.mean(logs**2))), _LEAST_SPREAD)


def kernel_sigma(
    target: Target, sequences: FloatArray, context_tokens: FloatArray, query_tokens: int
) -> FloatArray:
    """Log standard deviation of forward passes, shape ``(n,)`` [1]."""
    nothing = np.zeros_like(sequences)
    cost = forward_pass(
        target, IterationShape(sequences, context_tokens, query_tokens, nothing, nothing)
    )
    kernels = target.profile.kernels
    attention = (
        kernels.decode_attention
        if isinstance(target.model.attention, GroupedQueryAttention)
        else kernels.latent_decode_attention
    )
    variance = (cost.linear_s * _sigma(kernels.gemm[target.gemm_kernel].provenance)) ** 2
    variance += (cost.attention_s * _sigma(attention[target.kv_precision].provenance)) ** 2
    if target.model.is_moe:
        kernel = target.profile.kernel_choice[target.precision].moe
        variance += (cost.experts_s * _sigma(kernels.moe[kernel].provenance)) ** 2
    reduction = measured_ranks(target.profile, target.parallelism.tensor)
    variance += (cost.reduction_s * _sigma(reduction.provenance)) ** 2
    sigma: FloatArray = np.sqrt(variance) / cost.total_s
    return sigma


def _sigma(origin: Provenance) -> float:
    return origin.heldout_p90_error / _P90_OF_NORMAL
