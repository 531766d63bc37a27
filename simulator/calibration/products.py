"""Fits of matrix products: dense ones, and the grouped ones of experts."""

from typing import TYPE_CHECKING

from simulator.calibration.choices import TableChoice
from simulator.calibration.fitting import FitResult, FloatArray, fit_coefficients, provenance
from simulator.calibration.tables import read_table, source_name
from simulator.costs.experts import moe_seconds
from simulator.costs.operators import PEAK_OF, gemm_seconds
from simulator.specs.hardware import Device, KernelPrecision
from simulator.specs.kernels import GemmFit, MoeFit, Provenance

if TYPE_CHECKING:
    import pandas as pd

GEMM_SHAPE = ("n", "k")
MOE_SHAPE = (
    "hidden_size",
    "inter_size",
    "topk",
    "num_experts",
    "moe_tp_size",
    "moe_ep_size",
)
_MOE_COLUMNS = (
    "num_tokens",
    "hidden_size",
    "inter_size",
    "topk",
    "num_experts",
    "moe_tp_size",
    "moe_ep_size",
)
_ROUTING = "power_law_1.01"
_MOE_NOTE = (
    f"time of the most loaded rank under {_ROUTING} routing; imbalance belongs to that routing, "
    "not to a model"
)
_NARROWEST = 128
"""Narrower products and shards are less than a tile and behave differently [1]."""
_MOST_EXPERTS_PER_TOKEN = 16
"""More only occur in models whose experts work on a compressed hidden state [1]."""
_TWO_MATRIX_HIDDEN = 2688
"""Hidden size of models whose experts have two matrices instead of three."""

_GEMM_STARTS = (
    (3e-6, 0.7, 0.8, 1.0, 2e4, 100.0, 1e5, 1.0, 0.5),
    (3e-6, 0.7, 0.8, 0.3, 2e5, 300.0, 1e6, 0.3, 1.5),
)
_MOE_STARTS = (
    (2e-5, 0.5, 0.7, 1.0, 0.5, 0.9, 8.0, 2.0, 1e-8),
    (3e-5, 0.7, 0.9, 3.0, 0.8, 0.7, 20.0, 1.0, 1e-7),
    (1e-5, 0.4, 0.8, 0.3, 1.2, 1.0, 50.0, 4.0, 5e-7),
)
UNFITTED = Provenance(
    source="",
    table="",
    kernel="",
    points=0,
    heldout_points=0,
    heldout_median_error=0.0,
    heldout_p90_error=0.0,
)


def gemm_rows(gpu: str, choice: TableChoice) -> "pd.DataFrame":
    """Measured dense products of one precision, at least a tile wide and deep."""
    rows = read_table(gpu, choice.table)
    return rows[
        (rows["gemm_dtype"] == choice.dtype) & (rows["n"] >= _NARROWEST) & (rows["k"] >= _NARROWEST)
    ].reset_index(drop=True)


def fit_gemm(
    rows: "pd.DataFrame", precision: KernelPrecision, device: Device, table: str
) -> GemmFit:
    """Fit dense products of one precision, held out by ``(n, k)``."""
    quantises = precision != "bf16"

    def build(c: FloatArray, origin: Provenance) -> GemmFit:
        return GemmFit(
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=c[2],
            norm=1.0 + min(c[3], 20.0),
            idle_area=c[4],
            prologue_depth=c[5],
            fixed_bytes=c[6],
            padded_share=c[7] / (1.0 + c[7]),
            quantise_passes=c[8] if quantises else 0.0,
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return gemm_seconds(
            build(c, UNFITTED),
            precision,
            device.peak_flops_per_s[PEAK_OF[precision]],
            device.hbm_bytes_per_s,
            *(chosen[name].to_numpy() for name in ("m", "n", "k")),
        )

    result = fit_coefficients(rows, GEMM_SHAPE, model, _GEMM_STARTS)
    return build(result.coefficients, _origin(rows, result, table, ("m", "n", "k")))


def moe_rows(gpu: str, choice: TableChoice) -> "pd.DataFrame":
    """Measured expert layers of one kernel under mildly skewed routing.

    Left out: two-matrix experts, one or very many experts a token, shards narrower than a tile.
    """
    rows = read_table(gpu, choice.table)
    return rows[
        (rows["moe_dtype"] == choice.dtype)
        & rows["kernel_source"].str.contains(choice.kernel, regex=False)
        & (rows["distribution"] == _ROUTING)
        & rows["topk"].between(2, _MOST_EXPERTS_PER_TOKEN)
        & (rows["inter_size"] / rows["moe_tp_size"] >= _NARROWEST)
        & (rows["hidden_size"] != _TWO_MATRIX_HIDDEN)
    ].reset_index(drop=True)


def fit_moe(rows: "pd.DataFrame", precision: KernelPrecision, device: Device, table: str) -> MoeFit:
    """Fit expert layers of one precision, held out by model shape and sharding."""

    def build(c: FloatArray, origin: Provenance) -> MoeFit:
        return MoeFit(
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=min(c[2], 1.0),
            norm=1.0 + min(c[3], 20.0),
            imbalance=min(c[4], 3.0),
            spread=min(c[5], 3.0),
            tile_rows=c[6],
            activation_traffic=c[7],
            expert_s=c[8],
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return moe_seconds(
            build(c, UNFITTED),
            precision,
            device.peak_flops_per_s[PEAK_OF[precision]],
            device.hbm_bytes_per_s,
            *(chosen[name].to_numpy() for name in _MOE_COLUMNS),
        )

    result = fit_coefficients(rows, MOE_SHAPE, model, _MOE_STARTS)
    return build(result.coefficients, _origin(rows, result, table, _MOE_COLUMNS, _MOE_NOTE))


def _origin(
    rows: "pd.DataFrame",
    result: FitResult,
    table: str,
    ranges: tuple[str, ...],
    note: str = "",
) -> Provenance:
    kernels = sorted(set(rows["kernel_source"]))
    return provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(kernels),
        ranges=ranges,
        note=note,
    )
