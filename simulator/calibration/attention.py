"""Fits of attention: over a cache and of prompts, with grouped-query heads and with latents.

Heads of each width are fitted apart, windows together with whole contexts. The compute coefficient
of attention over a cache is identified by latents only, of which one cache serves up to 128 query
rows; grouped heads with one new token are bound by memory throughout.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.calibration.fitting import FloatArray, fit_coefficients, provenance
from simulator.calibration.products import UNFITTED
from simulator.calibration.tables import read_table, source_name
from simulator.costs.attention import CACHE_BYTES, decode_seconds, prefill_seconds
from simulator.errors import CalibrationError
from simulator.specs.hardware import CachePrecision, Device
from simulator.specs.kernels import DecodeAttentionFit, PrefillAttentionFit, Provenance

if TYPE_CHECKING:
    import pandas as pd

TABLE_DTYPE: dict[CachePrecision, str] = {"bf16": "bfloat16", "fp8": "fp8"}
"""Names of cache precisions in the tables."""

LATENT_WIDTH = 512.0
ROPE_WIDTH = 64.0
EXPANDED_WIDTH = 128.0
"""Width of a latent head's values, and of its keys without the rotary part [1]."""
GROUPED_SHAPE = ("num_heads", "num_key_value_heads")
LATENT_SHAPE = ("num_heads", "batch_size")
"""Latents have eight numbers of heads only, too few to leave some of them out."""

_WIDEST_WINDOW = 1024
"""Wider ones are not heeded by all kernels: SGLang's read a context of any length [tokens]."""
_MOST_OF_PEAK = 0.8
"""No kernel of the tables computes faster, as a share of the peak [1]."""
_COMPUTE_NOTE = (
    "compute efficiency is the prefill kernel's, times how the latent decode kernel compares with "
    "the latent prefill kernel (at most 1): one query token a sequence does not identify it"
)
_DECODE_STARTS = (
    (8e-6, 0.8, 1.5, 1e5, 1.0, 1e-8, 1e-9, 1e-9, 1e-7, 50.0, 1.0),
    (5e-6, 0.7, 3.0, 1e6, 3.0, 1e-7, 1e-8, 1e-8, 2e-6, 100.0, 5.0),
)
_PREFILL_STARTS = (
    (8e-6, 0.6, 0.8, 1.5, 1e4, 100.0, 1e-9, 1e-12, 1e-12, 64.0),
    (1e-5, 0.4, 0.7, 1.0, 1e5, 300.0, 1e-8, 1e-11, 1e-12, 128.0),
)


def grouped_rows(
    gpu: str,
    table: str,
    kv: CachePrecision,
    head_dim: int,
    *,
    kernel: str = "",
    least_group: int = 1,
) -> "pd.DataFrame":
    """Measured grouped-query attention with heads of one width.

    Parameters
    ----------
    kernel
        Part of the kernel's name; empty for all.
    least_group
        Fewest query heads that share a KV head [1].
    """
    rows = read_table(gpu, table)
    if "window_size" not in rows:
        rows = rows.assign(window_size=0)
    groups = rows["num_heads"] / rows["num_key_value_heads"]
    return rows[
        (rows["kv_cache_dtype"] == TABLE_DTYPE[kv])
        & (rows["head_dim"] == head_dim)
        & rows["kernel_source"].str.contains(kernel, regex=False)
        & (groups % 1 == 0)
        & (groups >= least_group)
        & (rows["isl"] + rows["step"] > 1)
        & (rows["window_size"] <= _WIDEST_WINDOW)
    ].reset_index(drop=True)


def latent_rows(gpu: str, table: str, kv: CachePrecision) -> "pd.DataFrame":
    """Measured latent attention."""
    rows = read_table(gpu, table)
    return rows[
        (rows["kv_cache_dtype"] == TABLE_DTYPE[kv]) & (rows["isl"] + rows["step"] > 1)
    ].reset_index(drop=True)


def decode_compute(
    prefill: PrefillAttentionFit,
    latent_decode: DecodeAttentionFit,
    latent_prefill: PrefillAttentionFit,
) -> float:
    """Compute coefficient of grouped attention over a cache, by analogy with latents [1]."""
    ratio = latent_decode.compute_efficiency / latent_prefill.compute_efficiency
    return prefill.compute_efficiency * min(1.0, ratio)


def fit_decode(
    rows: "pd.DataFrame",
    kv: CachePrecision,
    device: Device,
    table: str,
    compute_efficiency: float | None = None,
) -> DecodeAttentionFit:
    """Fit attention over a cache, held out by the numbers of heads, or of latents and sequences.

    Parameters
    ----------
    compute_efficiency
        Given for grouped heads, which do not identify it [1].
    """
    width = _only_width(rows) if _is_grouped(rows) else LATENT_WIDTH + ROPE_WIDTH

    def build(c: FloatArray, origin: Provenance) -> DecodeAttentionFit:
        fitted = _MOST_OF_PEAK * c[10] / (1.0 + c[10])
        has_windows = _has_windows(rows)
        return DecodeAttentionFit(
            head_dim=width,
            launch_s=c[0],
            compute_efficiency=compute_efficiency or fitted,
            memory_efficiency=c[1],
            norm=1.0 + min(c[2], 20.0),
            fixed_bytes=c[3],
            query_traffic=c[4],
            root_s=c[5],
            token_s=c[6],
            group_s=c[7],
            window_s=c[8] if has_windows else 0.0,
            window_tokens=c[9] if has_windows else 0.0,
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return predicted_decode(build(c, UNFITTED), kv, device, chosen)

    shape = GROUPED_SHAPE if _is_grouped(rows) else LATENT_SHAPE
    result = fit_coefficients(rows, shape, model, _DECODE_STARTS)
    origin = provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(sorted(set(rows["kernel_source"]))),
        ranges=("batch_size", "step", *GROUPED_SHAPE[: 2 if _is_grouped(rows) else 1]),
        note=_COMPUTE_NOTE if compute_efficiency else "",
    )
    return build(result.coefficients, origin)


def fit_prefill(
    rows: "pd.DataFrame", kv: CachePrecision, device: Device, table: str
) -> PrefillAttentionFit:
    """Fit attention of prompts, held out by the numbers of heads, or of latents and sequences."""
    is_grouped = _is_grouped(rows)
    width = _only_width(rows) if is_grouped else EXPANDED_WIDTH + ROPE_WIDTH

    def build(c: FloatArray, origin: Provenance) -> PrefillAttentionFit:
        return PrefillAttentionFit(
            head_dim=width,
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=min(c[2], 1.0),
            norm=1.0 + min(c[3], 20.0),
            idle_rows=c[4],
            prologue_tokens=c[5],
            head_s=c[6],
            write_thread_s=c[7] if is_grouped else 0.0,
            write_element_s=c[8],
            window_tokens=c[9] if _has_windows(rows) else 0.0,
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return predicted_prefill(build(c, UNFITTED), kv, device, chosen)

    result = fit_coefficients(
        rows, GROUPED_SHAPE if is_grouped else LATENT_SHAPE, model, _PREFILL_STARTS
    )
    origin = provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(sorted(set(rows["kernel_source"]))),
        ranges=("batch_size", "isl", *GROUPED_SHAPE[: 2 if is_grouped else 1]),
    )
    return build(result.coefficients, origin)


def predicted_decode(
    fit: DecodeAttentionFit, kv: CachePrecision, device: Device, rows: "pd.DataFrame"
) -> FloatArray:
    """Seconds that a fit gives to measured rows of attention over a cache [s]."""
    heads = rows["num_heads"].to_numpy()
    if _is_grouped(rows):
        groups = rows["num_key_value_heads"].to_numpy()
        keys, values, cached = fit.head_dim, fit.head_dim, 2.0 * fit.head_dim
    else:
        groups = np.ones(len(rows))
        keys, values, cached = LATENT_WIDTH + ROPE_WIDTH, LATENT_WIDTH, LATENT_WIDTH + ROPE_WIDTH
    return decode_seconds(
        fit,
        device.peak_flops_per_s[kv],
        device.hbm_bytes_per_s,
        rows["batch_size"].to_numpy(),
        rows["step"].to_numpy() + 1.0,
        groups=groups,
        rows=heads / groups,
        key_width=keys,
        value_width=values,
        cache_width_bytes=cached * CACHE_BYTES[kv],
        window=_windows(rows),
    )


def predicted_prefill(
    fit: PrefillAttentionFit, kv: CachePrecision, device: Device, rows: "pd.DataFrame"
) -> FloatArray:
    """Seconds that a fit gives to measured rows of attention of prompts [s]."""
    return prefill_seconds(
        fit,
        device.peak_flops_per_s[kv],
        device.hbm_bytes_per_s,
        rows["batch_size"].to_numpy(),
        rows["isl"].to_numpy(),
        0.0,
        heads=rows["num_heads"].to_numpy(),
        **_prompt_widths(fit, kv, rows),
        window=_windows(rows),
    )


def _prompt_widths(
    fit: PrefillAttentionFit, kv: CachePrecision, rows: "pd.DataFrame"
) -> Mapping[str, Any]:
    if _is_grouped(rows):
        written = rows["num_key_value_heads"].to_numpy() * fit.head_dim
        cached = 2.0 * written * CACHE_BYTES[kv]
        value_width = fit.head_dim
    else:
        written = np.full(len(rows), fit.head_dim)
        # Keys and values are expanded in 16 bits.
        cached = (
            rows["num_heads"].to_numpy() * (fit.head_dim + EXPANDED_WIDTH) * CACHE_BYTES["bf16"]
        )
        value_width = EXPANDED_WIDTH
    return {
        "key_width": fit.head_dim,
        "value_width": value_width,
        "cache_bytes_per_token": cached,
        "written_width": written,
    }


def _is_grouped(rows: "pd.DataFrame") -> bool:
    return "num_key_value_heads" in rows


def _only_width(rows: "pd.DataFrame") -> float:
    widths = set(rows["head_dim"].tolist())
    if len(widths) != 1:
        raise CalibrationError(f"a fit needs heads of one width, not {sorted(widths) or 'none'}")
    return float(widths.pop())


def _has_windows(rows: "pd.DataFrame") -> bool:
    return "window_size" in rows and bool((rows["window_size"] > 0).any())


def _windows(rows: "pd.DataFrame") -> FloatArray:
    if "window_size" not in rows:
        return np.full(len(rows), math.inf)
    sizes = rows["window_size"].to_numpy(dtype=np.float64)
    return np.asarray(np.where(sizes > 0, sizes, math.inf))
