"""Seconds of a dense matrix product and of a pass over memory, on one GPU.

Every operator is a launch time plus a p-norm of what it must compute and what it must move: for a
norm of 1 the two add up, for a large one the longer hides the other. Arrays broadcast; no work
takes no time. A price never falls below the datasheet's bound.
"""

import numpy as np
import numpy.typing as npt

from simulator.specs.hardware import HardwareProfile, KernelPrecision, Precision
from simulator.specs.kernels import GemmFit

FloatArray = npt.NDArray[np.float64]

ELEMENT_BYTES: dict[KernelPrecision, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
}
"""Bytes of a stored element, block scales included [bytes]."""

PEAK_OF: dict[KernelPrecision, Precision] = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
}
"""Which datasheet peak a kernel works towards."""

_OUTPUT_BYTES = 2.0
_TILE_ROWS = 128.0
_ELEMENTWISE_EFFICIENCY = 0.7
"""Share of the bandwidth that fused elementwise kernels reach (assumed) [1]."""


def joined(norm: float, *parts: npt.ArrayLike) -> FloatArray:
    """The p-norm of non-negative times: ``(sum part^p)^(1/p)``, free of overflow [s]."""
    arrays = [np.asarray(part, dtype=np.float64) for part in parts]
    largest = arrays[0]
    for array in arrays[1:]:
        largest = np.maximum(largest, array)
    scale = np.where(largest > 0, largest, 1.0)
    total = sum((array / scale) ** norm for array in arrays)
    return np.asarray(largest * np.maximum(total, 1.0) ** (1.0 / norm))


def gemm_s(
    profile: HardwareProfile,
    precision: KernelPrecision,
    m: npt.ArrayLike,
    n: npt.ArrayLike,
    k: npt.ArrayLike,
) -> FloatArray:
    """Seconds of ``(m, k) x (k, n)`` with 16-bit activations in and out [s].

    ``t = t0 + || 2 (m' n + A0) (k + K0) / (P ec), (w n k + w m k + 2 m n + B0) / (W em) ||_p
    + q 3 m k / W`` with ``m'`` padded to 128 rows by a fitted share, ``w`` the bytes of an element,
    ``P`` the peak and ``W`` the bandwidth.

    Parameters
    ----------
    m
        Rows, that is tokens; may be fractional, and 0 takes no time [1].
    n, k
        Columns and inner dimension of the weights on this GPU [1].
    """
    rate = profile.device.peak_flops_per_s[PEAK_OF[precision]]
    bandwidth = profile.device.hbm_bytes_per_s
    return gemm_seconds(profile.kernels.gemm[precision], precision, rate, bandwidth, m, n, k)


def gemm_seconds(
    fit: GemmFit,
    precision: KernelPrecision,
    peak_flops_per_s: float,
    bytes_per_s: float,
    m: npt.ArrayLike,
    n: npt.ArrayLike,
    k: npt.ArrayLike,
) -> FloatArray:
    """The equation of :func:`gemm_s` with its coefficients and rates spelt out [s]."""
    rows, columns, depth = (np.asarray(value, dtype=np.float64) for value in (m, n, k))
    width = ELEMENT_BYTES[precision]
    padded = np.ceil(rows / _TILE_ROWS) * _TILE_ROWS
    paid_rows = rows + fit.padded_share * (padded - rows)
    flops = 2.0 * (paid_rows * columns + fit.idle_area) * (depth + fit.prologue_depth)
    moved = width * depth * (columns + rows) + _OUTPUT_BYTES * rows * columns
    compute_s = flops / (peak_flops_per_s * fit.compute_efficiency)
    memory_s = (moved + fit.fixed_bytes) / (bytes_per_s * fit.memory_efficiency)
    seconds = fit.launch_s + joined(fit.norm, compute_s, memory_s)
    if fit.quantise_passes:
        seconds = seconds + fit.quantise_passes * 3.0 * rows * depth / bytes_per_s
    bound = np.maximum(
        2.0 * rows * columns * depth / peak_flops_per_s, width * columns * depth / bytes_per_s
    )
    return np.where(rows > 0, np.maximum(seconds, bound), 0.0)


def elementwise_s(profile: HardwareProfile, num_bytes: npt.ArrayLike) -> FloatArray:
    """Seconds of a pass over memory, such as a norm or an activation [s].

    Launches are left out: engines fuse these kernels with their neighbours.
    """
    rate = _ELEMENTWISE_EFFICIENCY * profile.device.hbm_bytes_per_s
    return np.asarray(num_bytes, dtype=np.float64) / rate
