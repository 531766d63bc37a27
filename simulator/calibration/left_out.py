"""How well expert layers of a model are priced that no measurement of the fit came from.

Held-out shardings of a fit may belong to a model whose other shardings were fitted. Here all rows
of a shipped model leave the fit, and are then priced.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from simulator.calibration.choices import CHOICES
from simulator.calibration.products import fit_moe, moe_rows
from simulator.costs.experts import moe_s
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_model, find_profile, model_names

if TYPE_CHECKING:
    import pandas as pd

_SHAPE = ("hidden_size", "inter_size", "topk", "num_experts")
_COLUMNS = ("num_tokens", *_SHAPE, "moe_tp_size", "moe_ep_size")


def left_out_table(name: str) -> str:
    """Markdown table of the errors of each shipped model left out, one row a precision and model.

    Raises
    ------
    CalibrationError
        If the profile is not fitted to tables of its own.
    """
    if name not in CHOICES:
        raise CalibrationError(f"{name} is not fitted to tables; known are {', '.join(CHOICES)}")
    lines = [
        "| kernel | model left out | rows | median | 90th percentile |",
        "|---|---|---|---|---|",
    ]
    profile = find_profile(name)
    for precision, choice in CHOICES[name].moe.items():
        rows = moe_rows(CHOICES[name].gpu, choice)
        for model, is_left_out in _models_in(rows):
            fit = fit_moe(rows[~is_left_out], precision, profile.device, choice.table)
            kernels = profile.kernels.model_copy(update={"moe": {precision: fit}})
            left = rows[is_left_out]
            seconds = moe_s(
                profile.model_copy(update={"kernels": kernels}),
                precision,
                *(left[column].to_numpy() for column in _COLUMNS),
            )
            errors = np.abs(seconds / left["seconds"].to_numpy() - 1.0)
            lines.append(
                f"| {precision} | {model} | {len(left)} | {np.median(errors):.1%} | "
                f"{np.quantile(errors, 0.9):.1%} |"
            )
    return "\n".join(lines)


def _models_in(rows: "pd.DataFrame") -> "Iterator[tuple[str, pd.Series[bool]]]":
    """Shipped models whose expert layers were measured, and which rows are theirs."""
    seen = set()
    for name in model_names():
        model = find_model(name)
        if model.experts is None:
            continue
        shape = (
            model.hidden_size,
            model.experts.intermediate,
            model.experts.experts_per_token,
            model.experts.num_experts,
        )
        is_its_own = (rows[list(_SHAPE)] == list(shape)).all(axis="columns")
        if shape not in seen and is_its_own.any() and not is_its_own.all():
            seen.add(shape)
            yield name, is_its_own
