"""Seconds of a dense matrix product and of a pass over memory, on one GPU.

Every operator is a launch time plus a p-norm of what it must compute and what it must move: for a
norm of 1 the two add up, for a large one the longer hides the other. Arrays broadcast; no work
takes no time. A price never falls below the datasheet's bound.

What a product must compute comes in tiles of its output, one at a time on every streaming
multiprocessor (SM). A tile walks the whole inner dimension, so a product of few tiles waits for the
walk and not for the peak; a library shortens it by smaller tiles or by splitting the walk.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.specs.hardware import HardwareProfile, KernelPrecision, Precision
from simulator.specs.kernels import GemmFit, TileMenu

FloatArray = npt.NDArray[np.float64]

ELEMENT_BYTES: dict[KernelPrecision, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
    "mxfp4_mxfp8": 0.53125,
}
"""Bytes of a stored element, block scales included [bytes]."""

PEAK_OF: dict[KernelPrecision, Precision] = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "fp4",
    "mxfp4": "bf16",
    "mxfp4_mxfp8": "fp8",
}
"""Which datasheet peak a kernel works towards."""

_OUTPUT_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Tile:
    """A block of output that one SM computes."""

    rows: float
    """Rows, that is tokens [1]."""
    columns: float
    """Columns [1]."""
    most_rows: float = math.inf
    """Rows of a product up to which a library considers this tile [1]."""


TILES: Mapping[TileMenu, tuple[Tile, ...]] = {
    "free": (Tile(64, 64), Tile(64, 128), Tile(128, 128), Tile(128, 256), Tile(256, 128)),
    "fine": (
        Tile(64, 16),
        Tile(64, 32),
        Tile(64, 64),
        Tile(128, 64),
        Tile(128, 128),
        Tile(128, 256),
        Tile(256, 256),
    ),
    "by_rows": (Tile(64, 64, most_rows=64), Tile(64, 128, most_rows=128), Tile(128, 128)),
}
"""Tiles that a library chooses the fastest of: cuBLAS; DeepGEMM, with narrow ones; kernels of
CUTLASS that are dispatched by the number of rows alone."""

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

    A tile of ``a x b`` outputs takes ``s = 2 a b SMs / (P ec) + d`` for a unit of depth. There are
    ``v = [m/a] ceil(n/b) / SMs`` waves of them, where ``[x]`` rounds a fitted share of the way up.
    The walk takes ``x = max(1, [v]) (k + K0) s``, or split ``t1 + max(v, 1/SMs) (k + K0) s`` if
    that is less, with the fastest tile of the library's menu:
    ``t = t0 + || min x, (w n k + w m k + 2 m n) / (W em) ||_p + q 3 m k / W``. ``w`` are the bytes
    of an element, ``P`` is the peak and ``W`` the bandwidth. The price never falls as ``m`` grows.

    Parameters
    ----------
    m
        Rows, that is tokens; may be fractional, and 0 takes no time [1].
    n, k
        Columns and inner dimension of the weights on this GPU [1].
    """
    return gemm_seconds(
        profile.kernels.gemm[precision],
        precision,
        profile.device.peak_flops_per_s[PEAK_OF[precision]],
        profile.device.hbm_bytes_per_s,
        profile.device.sm_count,
        m,
        n,
        k,
    )


def gemm_seconds(
    fit: GemmFit,
    precision: KernelPrecision,
    peak_flops_per_s: float,
    bytes_per_s: float,
    sm_count: int,
    m: npt.ArrayLike,
    n: npt.ArrayLike,
    k: npt.ArrayLike,
) -> FloatArray:
    """The equation of :func:`gemm_s` with its coefficients and rates spelt out [s]."""
    rows, columns, depth = (np.asarray(value, dtype=np.float64) for value in (m, n, k))
    width = ELEMENT_BYTES[precision]
    walk_s = np.asarray(np.inf)
    for tile in TILES[fit.tiles]:
        seconds = _walk_s(fit, tile, peak_flops_per_s, sm_count, rows, columns, depth)
        if math.isfinite(tile.most_rows):
            seconds = np.where(rows <= tile.most_rows, seconds, np.inf)
        walk_s = np.minimum(walk_s, seconds)
    moved = width * depth * (columns + rows) + _OUTPUT_BYTES * rows * columns
    seconds = fit.launch_s + joined(fit.norm, walk_s, moved / (bytes_per_s * fit.memory_efficiency))
    if fit.quantise_passes:
        seconds = seconds + fit.quantise_passes * 3.0 * rows * depth / bytes_per_s
    bound = np.maximum(
        2.0 * rows * columns * depth / peak_flops_per_s, width * columns * depth / bytes_per_s
    )
    return np.where(rows > 0, np.maximum(seconds, bound), 0.0)


def _walk_s(
    fit: GemmFit,
    tile: Tile,
    peak_flops_per_s: float,
    sm_count: int,
    rows: FloatArray,
    columns: FloatArray,
    depth: FloatArray,
) -> FloatArray:
    """Seconds of all tiles of one size."""
    flops = 2.0 * tile.rows * tile.columns
    unit_s = flops * sm_count / (peak_flops_per_s * fit.compute_efficiency) + fit.depth_s
    tiles = _partly_up(rows / tile.rows, fit.padded_share) * np.ceil(columns / tile.columns)
    waves = tiles / sm_count
    once_s = (depth + fit.prologue_depth) * unit_s
    whole_s = np.maximum(_partly_up(waves, fit.wave_share), 1.0) * once_s
    if fit.split_s is None:
        return whole_s
    return np.minimum(whole_s, fit.split_s + np.maximum(waves, 1.0 / sm_count) * once_s)


def _partly_up(values: FloatArray, share: float) -> FloatArray:
    """Values moved a share of the way to the next whole number."""
    return values + share * (np.ceil(values) - values)


def elementwise_s(profile: HardwareProfile, num_bytes: npt.ArrayLike) -> FloatArray:
    """Seconds of a pass over memory, such as a norm or an activation [s].

    Launches are left out: engines fuse these kernels with their neighbours.
    """
    rate = _ELEMENTWISE_EFFICIENCY * profile.device.hbm_bytes_per_s
    return np.asarray(num_bytes, dtype=np.float64) / rate
