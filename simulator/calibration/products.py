"""Fits of matrix products: dense ones, and the grouped ones of experts."""

from typing import TYPE_CHECKING, get_args

import numpy as np
import numpy.typing as npt

from simulator.calibration.choices import TableChoice
from simulator.calibration.fitting import (
    FitResult,
    FloatArray,
    fit_coefficients,
    is_held_out,
    provenance,
)
from simulator.calibration.tables import read_table, source_name
from simulator.costs.experts import moe_seconds
from simulator.costs.operators import PEAK_OF, gemm_seconds
from simulator.specs.hardware import Device, KernelPrecision
from simulator.specs.kernels import GemmFit, MoeFit, Provenance, TileMenu

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
_EVEN = "balanced"
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
_MANY_TOKENS = 1024
"""Tokens from which the load of a rank decides its time [tokens]."""
_MOST_EVEN_EXCESS = 1.1
"""Even over skewed routing, beyond which a shape was not routed as the table says [1]."""

_GEMM_STARTS = (
    (2.5e-6, 0.8, 0.85, 1.5, 100.0, 5e-10, 1.0, 1.0, 4e-6),
    (3.5e-6, 0.7, 0.85, 2.0, 300.0, 1e-9, 0.3, 0.3, 1.0),
    (3.5e-6, 0.6, 1.0, 0.5, 50.0, 1e-9, 0.1, 3.0, 2.0),
)
_MOE_STARTS = (
    (2e-5, 0.5, 1.5, 1.5, 8.0, 50.0, 2.0, 0.5, 3e-10, 3e-6, 1e-8, 1.0, 1.5),
    (1e-5, 0.4, 2.0, 3.0, 50.0, 50.0, 4.0, 0.5, 3e-10, 3e-6, 1e-7, 0.3, 1.0),
    (2e-5, 0.6, 2.0, 2.0, 16.0, 200.0, 1.0, 0.05, 1e-9, 1e-5, 3e-7, 1.5, 0.8),
    (1e-5, 0.6, 3.0, 2.5, 30.0, 30.0, 1.5, 0.3, 3e-9, 2e-5, 1e-9, 0.7, 2.0),
)
_ROBUST_SCALE = 0.1
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
    """Fit dense products of one precision, held out by ``(n, k)``.

    cuBLAS, which runs the 16-bit ones, splits the depth and has every tile; for the others the menu
    of tiles is the one that fits the training rows best.
    """
    if precision == "bf16":
        return _fit_gemm(rows, precision, device, table, "free")
    training = rows[~is_held_out(rows, GEMM_SHAPE)]
    fits = [_fit_gemm(rows, precision, device, table, menu) for menu in get_args(TileMenu)]
    return min(fits, key=lambda fit: _loss(fit, precision, device, training))


def _fit_gemm(
    rows: "pd.DataFrame",
    precision: KernelPrecision,
    device: Device,
    table: str,
    tiles: TileMenu,
) -> GemmFit:
    def build(c: FloatArray, origin: Provenance) -> GemmFit:
        splits = precision == "bf16"
        return GemmFit(
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=c[2],
            norm=1.0 + min(c[3], 20.0),
            tiles=tiles,
            prologue_depth=c[4],
            depth_s=c[5],
            wave_share=c[6] / (1.0 + c[6]),
            padded_share=c[7] / (1.0 + c[7]),
            split_s=c[8] if splits else None,
            quantise_passes=0.0 if splits else c[8],
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return _predicted(build(c, UNFITTED), precision, device, chosen)

    starts = _GEMM_STARTS if precision == "bf16" else tuple((*s[:8], 1.0) for s in _GEMM_STARTS)
    result = fit_coefficients(rows, GEMM_SHAPE, model, starts)
    return build(result.coefficients, _origin(rows, result, table, ("m", "n", "k")))


def _predicted(
    fit: GemmFit, precision: KernelPrecision, device: Device, rows: "pd.DataFrame"
) -> FloatArray:
    return gemm_seconds(
        fit,
        precision,
        device.peak_flops_per_s[PEAK_OF[precision]],
        device.hbm_bytes_per_s,
        device.sm_count,
        *(rows[name].to_numpy() for name in ("m", "n", "k")),
    )


def _loss(fit: GemmFit, precision: KernelPrecision, device: Device, rows: "pd.DataFrame") -> float:
    """The mean that fitting minimises."""
    ratio = np.log(_predicted(fit, precision, device, rows) / rows["seconds"].to_numpy())
    return float(np.mean(np.sqrt(1.0 + (ratio / _ROBUST_SCALE) ** 2)))


def moe_rows(gpu: str, choice: TableChoice) -> "pd.DataFrame":
    """Measured expert layers of one kernel under mildly skewed routing.

    Left out: two-matrix experts, one or very many experts a token, shards narrower than a tile, and
    shapes that were not routed as the table says.
    """
    rows = read_table(gpu, choice.table)
    rows = rows[
        (rows["moe_dtype"] == choice.dtype)
        & rows["kernel_source"].str.contains(choice.kernel, regex=False)
        & rows["topk"].between(2, _MOST_EXPERTS_PER_TOKEN)
        & (rows["inter_size"] / rows["moe_tp_size"] >= _NARROWEST)
        & (rows["hidden_size"] != _TWO_MATRIX_HIDDEN)
    ]
    skewed = rows[rows["distribution"] == _ROUTING]
    return skewed[~_is_misrouted(skewed, rows[rows["distribution"] == _EVEN])].reset_index(
        drop=True
    )


def _is_misrouted(skewed: "pd.DataFrame", even: "pd.DataFrame") -> npt.NDArray[np.bool_]:
    """Rows of shapes whose most loaded rank takes clearly longer under even routing.

    That cannot be: such a kernel, as vLLM's with DeepSeek's grouped choice of experts, routed
    tokens by a rule of its own.
    """
    shape = [*MOE_SHAPE, "kernel_source"]
    both = skewed.merge(even, on=["num_tokens", *shape], suffixes=("", "_even"))
    both = both[both["num_tokens"] >= _MANY_TOKENS]
    excess = (both["seconds_even"] / both["seconds"]).groupby([both[key] for key in shape]).median()
    misrouted = set(excess[excess > _MOST_EVEN_EXCESS].index)
    keys = skewed[shape].itertuples(index=False, name=None)
    return np.fromiter((key in misrouted for key in keys), dtype=np.bool_, count=len(skewed))


def fit_moe(rows: "pd.DataFrame", precision: KernelPrecision, device: Device, table: str) -> MoeFit:
    """Fit expert layers of one precision, held out by model shape and sharding.

    Where the engine ran one kernel for whole sets of experts and another one for experts divided
    among ranks, each gets its own fit.
    """
    is_divided = rows["moe_ep_size"] > 1
    whole, divided = rows[~is_divided], rows[is_divided]
    if set(whole["kernel_source"]) & set(divided["kernel_source"]) or divided.empty or whole.empty:
        return _fit_moe(rows, precision, device, table)
    return _fit_moe(whole, precision, device, table).model_copy(
        update={"divided": _fit_moe(divided, precision, device, table)}
    )


def _fit_moe(
    rows: "pd.DataFrame", precision: KernelPrecision, device: Device, table: str
) -> MoeFit:
    def build(c: FloatArray, origin: Provenance) -> MoeFit:
        return MoeFit(
            launch_s=c[0],
            compute_efficiency=c[1],
            memory_efficiency=c[2] / (1.0 + c[2]),
            imbalance=min(c[3], 10.0),
            tile_rows=c[4],
            prologue_width=c[5],
            activation_traffic=c[6],
            group_traffic=c[7],
            depth_s=c[8],
            sorting_s=c[9],
            expert_s=c[10],
            norm=1.0 + min(c[11], 20.0),
            spread=min(max(c[12], 0.3), 6.0),
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
