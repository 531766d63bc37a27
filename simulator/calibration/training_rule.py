"""What the fit of training may see, and how coefficients become one entry a GPU.

Few numbers: one matrix efficiency a GPU, and seven that all GPUs share. GPUs without rows get
H100's, by the rules in :func:`fits_by_profile`.
"""

from dataclasses import dataclass

from simulator.specs.catalog import find_model
from simulator.specs.pretraining import (
    FITTED_MODELS,
    PretrainingRow,
    is_comparable,
    megatron_rows,
    profile_of,
)
from simulator.specs.training_fit import LaunchTimes, ModelError, TrainingFit

_GROUPED = 0.75
"""Grouped over dense matrix efficiency: mean of the compute coefficients of the kernel fits of
H100 and GB200 in 16 and 8 bits (0.60, 0.95, 0.97, 0.55)."""
_ATTENTION = 0.55
"""FlashAttention-3 (arXiv 2407.08608, figures 5 and 6): about 620 TFLOP/s forward and 500 backward
of 989, causal, head width 128, weighted 2 to 5."""
_EXCHANGE = 0.8
"""NVLink rate of dispatch and combine at large messages (DeepEP: 153 of 160-200 GB/s)."""


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What is fitted; defaults are where the fit starts."""

    h100: float = 0.7
    b200: float = 0.6
    gb200: float = 0.6
    gb300: float = 0.7
    fp4: float = 0.8
    """Matrix efficiency in 4 bits over that in 8 and 16 [1]."""
    block_scaled: float = 0.9
    dense_passes: float = 16.0
    scale_up_share: float = 0.6
    expert_passes: float = 10.0
    expert_looped_s: float = 1e-4
    expert_fused_s: float = 5e-5
    layer_looped_s: float = 1e-3
    layer_fused_s: float = 1e-3
    scale_out_share: float = 0.6
    dense_error: float = 0.1
    moe_error: float = 0.2


def comparable_rows() -> list[PretrainingRow]:
    """Rows without the publisher's exceptions and the oldest expert software."""
    return [row for row in megatron_rows() if is_comparable(row, find_model(row.model))]


def fitted_rows() -> list[PretrainingRow]:
    """Those of the fitted models."""
    return [row for row in comparable_rows() if row.published_model in FITTED_MODELS]


def fits_by_profile(found: Coefficients) -> dict[str, TrainingFit]:
    """One entry a hardware profile.

    H200, H800 and H20 are H100's silicon and take its coefficients; their own peaks, memory and
    links do the rest. H20, whose peak is a seventh at the same memory, cannot be less efficient
    than H100, so the rule is careful there. A100 has no rows: H100's coefficients, without 8 bits.
    Efficiencies in 16 bits are those in 8: what differs between them is traffic, which is explicit.
    """
    counts: dict[str, int] = {}
    for row in fitted_rows():
        counts[profile_of(row.gpu)] = counts.get(profile_of(row.gpu), 0) + 1
    matrix = {
        "a100_sxm": found.h100,
        "h100_sxm": found.h100,
        "h200_sxm": found.h100,
        "h800_sxm": found.h100,
        "h20_sxm": found.h100,
        "b200_sxm": found.b200,
        "gb200": found.gb200,
        "gb300": found.gb300,
    }
    return {name: _entry(found, name, e, counts.get(name, 0)) for name, e in matrix.items()}


def _entry(found: Coefficients, name: str, matrix: float, points: int) -> TrainingFit:
    efficiencies = {"bf16": matrix}
    if name != "a100_sxm":
        efficiencies["fp8"] = matrix
    if "b" in name:
        efficiencies["fp4"] = round(matrix * found.fp4, 4)
    origin = (
        f"{points} rows of Megatron-Bridge on this GPU"
        if points
        else "No rows on this GPU: H100's coefficients at its own peaks, memory and links"
    )
    return TrainingFit.model_validate(
        {
            "matrix_efficiency": efficiencies,
            "block_scaled": found.block_scaled,
            "grouped": _GROUPED,
            "attention_efficiency": _ATTENTION,
            "dense_passes": found.dense_passes,
            "expert_passes": found.expert_passes,
            "scale_up_share": found.scale_up_share,
            "exchange_share": _EXCHANGE,
            "scale_out_share": found.scale_out_share,
            "expert_launch_s": LaunchTimes(
                looped=found.expert_looped_s, fused=found.expert_fused_s
            ),
            "layer_launch_s": LaunchTimes(looped=found.layer_looped_s, fused=found.layer_fused_s),
            "error": ModelError(dense=found.dense_error, moe=found.moe_error),
            "points": points,
            "source": f"{origin}; all but matrix_efficiency shared by all GPUs; split and "
            "equations in docs/training.md",
        }
    )
