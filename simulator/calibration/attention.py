"""Fits of attention: over a cache and of prompts, with grouped-query heads and with latents."""

from typing import TYPE_CHECKING

from simulator.calibration.fitting import FloatArray, fit_coefficients, provenance
from simulator.calibration.products import UNFITTED
from simulator.calibration.tables import read_table, source_name
from simulator.costs.attention import CACHE_BYTES, decode_seconds, prefill_seconds
from simulator.specs.hardware import CachePrecision, Device
from simulator.specs.kernels import DecodeAttentionFit, PrefillAttentionFit, Provenance

if TYPE_CHECKING:
    import pandas as pd

TABLE_DTYPE: dict[CachePrecision, str] = {"bf16": "bfloat16", "fp8": "fp8"}
"""Names of cache precisions in the tables."""

HEAD_WIDTH = 128.0
LATENT_WIDTH = 512.0
ROPE_WIDTH = 64.0
GROUPED_SHAPE = ("num_heads", "num_key_value_heads")
LATENT_SHAPE = ("num_heads",)

_DECODE_COMPUTE_SHARE = 0.5
"""Compute efficiency of decode kernels over that of prefill kernels (assumed) [1]: the tables hold
at most one tile of query rows a KV head, which is never bound by compute."""
_COMPUTE_NOTE = (
    "compute efficiency is half of the prefill kernel's (assumed): one query token a sequence "
    "does not identify it"
)
_DECODE_STARTS = (
    (8e-6, 0.8, 1.5, 1e5, 2.0, 1e-9),
    (5e-6, 0.7, 3.0, 1e6, 10.0, 1e-8),
)
_PREFILL_STARTS = (
    (8e-6, 0.6, 0.8, 1.5, 1e4, 100.0, 1e-9, 1.0),
    (1e-5, 0.4, 0.7, 3.0, 1e5, 300.0, 1e-8, 3.0),
)


def grouped_rows(gpu: str, table: str, kv_precision: CachePrecision) -> "pd.DataFrame":
    """Measured grouped-query attention with heads of 128 and no window."""
    rows = read_table(gpu, table)
    return rows[
        (rows["kv_cache_dtype"] == TABLE_DTYPE[kv_precision])
        & (rows["head_dim"] == HEAD_WIDTH)
        & (rows["window_size"] == 0)
        & (rows["num_heads"] % rows["num_key_value_heads"] == 0)
        & (rows["isl"] + rows["step"] > 1)
    ].reset_index(drop=True)


def latent_rows(gpu: str, table: str, kv_precision: CachePrecision) -> "pd.DataFrame":
    """Measured latent attention."""
    rows = read_table(gpu, table)
    return rows[
        (rows["kv_cache_dtype"] == TABLE_DTYPE[kv_precision]) & (rows["isl"] + rows["step"] > 1)
    ].reset_index(drop=True)


def fit_decode(
    rows: "pd.DataFrame",
    kv_precision: CachePrecision,
    device: Device,
    table: str,
    prefill: PrefillAttentionFit,
) -> DecodeAttentionFit:
    """Fit attention over a cache, held out by the numbers of heads."""
    is_latent = "num_key_value_heads" not in rows
    compute = _DECODE_COMPUTE_SHARE * prefill.compute_efficiency
    key_width = LATENT_WIDTH + ROPE_WIDTH if is_latent else HEAD_WIDTH
    value_width = LATENT_WIDTH if is_latent else HEAD_WIDTH
    cached = key_width if is_latent else 2.0 * HEAD_WIDTH

    def build(c: FloatArray, origin: Provenance) -> DecodeAttentionFit:
        return DecodeAttentionFit(
            launch_s=c[0],
            compute_efficiency=compute,
            memory_efficiency=c[1],
            norm=1.0 + min(c[2], 20.0),
            fixed_bytes=c[3],
            few_groups=c[4],
            group_s=c[5],
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        groups = 1.0 if is_latent else chosen["num_key_value_heads"].to_numpy()
        return decode_seconds(
            build(c, UNFITTED),
            device.peak_flops_per_s["bf16"],
            device.hbm_bytes_per_s,
            chosen["batch_size"].to_numpy(),
            chosen["step"].to_numpy() + 1.0,
            groups=groups,
            rows=chosen["num_heads"].to_numpy() / groups,
            key_width=key_width,
            value_width=value_width,
            cache_width_bytes=cached * CACHE_BYTES[kv_precision],
        )

    shape = LATENT_SHAPE if is_latent else GROUPED_SHAPE
    result = fit_coefficients(rows, shape, model, _DECODE_STARTS)
    origin = provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(sorted(set(rows["kernel_source"]))),
        ranges=("batch_size", "step", *shape),
        note=_COMPUTE_NOTE,
    )
    return build(result.coefficients, origin)


def fit_prefill(
    rows: "pd.DataFrame", kv_precision: CachePrecision, device: Device, table: str
) -> PrefillAttentionFit:
    """Fit attention of prompts, held out by the numbers of heads."""
    is_latent = "num_key_value_heads" not in rows
    key_width = HEAD_WIDTH + ROPE_WIDTH if is_latent else HEAD_WIDTH

    def build(c: FloatArray, origin: Provenance) -> PrefillAttentionFit:
        return PrefillAttentionFit(
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=min(c[2], 1.0),
            norm=1.0 + min(c[3], 20.0),
            idle_rows=c[4],
            prologue_tokens=c[5],
            head_s=c[6],
            quantise_passes=c[7] if kv_precision == "fp8" else 0.0,
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        if is_latent:
            cache = chosen["num_heads"].to_numpy() * (key_width + HEAD_WIDTH) * 2.0
        else:
            heads = chosen["num_key_value_heads"].to_numpy()
            cache = heads * 2.0 * HEAD_WIDTH * CACHE_BYTES[kv_precision]
        return prefill_seconds(
            build(c, UNFITTED),
            device.peak_flops_per_s["bf16"],
            device.hbm_bytes_per_s,
            chosen["batch_size"].to_numpy(),
            chosen["isl"].to_numpy(),
            0.0,
            heads=chosen["num_heads"].to_numpy(),
            key_width=key_width,
            value_width=HEAD_WIDTH,
            cache_bytes_per_token=cache,
        )

    shape = LATENT_SHAPE if is_latent else GROUPED_SHAPE
    result = fit_coefficients(rows, shape, model, _PREFILL_STARTS)
    origin = provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(sorted(set(rows["kernel_source"]))),
        ranges=("batch_size", "isl", *shape),
    )
    return build(result.coefficients, origin)
