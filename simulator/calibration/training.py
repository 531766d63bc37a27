"""Refit training on published rows: ``python -m simulator.calibration.training``.

Writes ``scenarios/published/megatron/fit.json`` and the ``training`` section of every profile under
``hardware_profiles``, and prints the errors. The same rows give the same bytes.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.calibration.profile import write_profile
from simulator.calibration.training_rule import (
    Coefficients,
    comparable_rows,
    fits_by_profile,
    fitted_rows,
)
from simulator.costs.pretraining import tokens_per_s_per_gpu
from simulator.data_root import data_root
from simulator.specs.catalog import find_model
from simulator.specs.hardware import HardwareProfile
from simulator.specs.pretraining import PretrainingRow, profile_of

FloatArray = npt.NDArray[np.float64]

_ROBUST_SCALE = 0.1
_DIGITS = 3
_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Group:
    """Coefficients that are fitted together, and how far each may go from where it starts."""

    names: tuple[str, ...]
    spreads: tuple[float, ...]
    """Standard deviation of the logarithm around the starting value [1]."""


DENSE = Group(
    ("h100", "b200", "gb200", "gb300", "fp4", "block_scaled", "dense_passes", "scale_up_share"),
    (0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.3, 0.3),
)
"""Starting values are typical of large matrix products; data on one model cannot part them."""

EXPERTS = Group(
    (
        "expert_passes",
        "expert_looped_s",
        "expert_fused_s",
        "layer_looped_s",
        "layer_fused_s",
        "scale_out_share",
    ),
    (0.5, 1.0, 1.0, 1.0, 1.0, 0.3),
)


def log_errors(rows: Sequence[PretrainingRow], coefficients: Coefficients) -> FloatArray:
    """Logarithm of projected over measured throughput, one a row."""
    fits = fits_by_profile(coefficients)
    return np.asarray(
        [
            np.log(
                tokens_per_s_per_gpu(row, find_model(row.model), fits[profile_of(row.gpu)])
                / row.tokens_per_s_per_gpu
            )
            for row in rows
        ]
    )


def fit_group(rows: Sequence[PretrainingRow], start: Coefficients, group: Group) -> Coefficients:
    """Least squares on the logarithmic error, with a normal prior on each coefficient's logarithm.

    Errors count in units of 10% and grow linearly beyond (soft L1).
    """
    from scipy.optimize import least_squares

    begin = np.log([getattr(start, name) for name in group.names])
    spreads = np.asarray(group.spreads)

    def at(logs: FloatArray) -> Coefficients:
        values = dict(zip(group.names, np.exp(logs).tolist(), strict=True))
        return replace(start, **values)

    def residuals(logs: FloatArray) -> FloatArray:
        scaled = log_errors(rows, at(logs)) / _ROBUST_SCALE
        robust = np.sign(scaled) * np.sqrt(2.0 * (np.sqrt(1.0 + scaled**2) - 1.0))
        return np.concatenate([robust, (logs - begin) / spreads])

    found = at(least_squares(residuals, begin, max_nfev=60).x)
    return replace(
        found,
        **{name: float(f"{getattr(found, name):.{_DIGITS}g}") for name in group.names},
    )


def fit(rows: Sequence[PretrainingRow]) -> Coefficients:
    """Dense models first, then what experts add, matrices as found; and the error of both."""
    dense = [row for row in rows if not find_model(row.model).is_moe]
    experts = [row for row in rows if find_model(row.model).is_moe]
    found = fit_group(dense, Coefficients(), DENSE)
    found = replace(
        found,
        dense_error=unseen_error(dense, Coefficients(), DENSE),
        moe_error=unseen_error(experts, found, EXPERTS),
    )
    return fit_group(experts, found, EXPERTS)


def unseen_error(rows: Sequence[PretrainingRow], start: Coefficients, group: Group) -> float:
    """Standard deviation of the logarithmic error on a model that the fit has not seen [1].

    Root mean square over models that are left out in turn. So few models leave the deviation itself
    uncertain: it is widened to the normal whose 95% interval is that of Student's t with one degree
    of freedom a model.
    """
    from scipy.special import stdtrit

    errors = []
    models = sorted({row.published_model for row in rows})
    for model in models:
        kept = [row for row in rows if row.published_model != model]
        left = [row for row in rows if row.published_model == model]
        errors.append(log_errors(left, fit_group(kept, start, group)))
    deviation = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    return round(deviation * float(stdtrit(len(models), 0.975)) / _NORMAL_95, 3)


def leave_one_out(rows: Sequence[PretrainingRow]) -> str:
    """Markdown table of each model's error when all others of its kind, and it not, are fitted."""
    lines = ["| model | rows | median | 90th percentile | bias |", "|---|---|---|---|---|"]
    shipped = fit(fitted_rows())
    for model in sorted({row.published_model for row in rows}):
        left = [row for row in rows if row.published_model == model]
        is_moe = find_model(left[0].model).is_moe
        others = [
            row
            for row in rows
            if row.published_model != model and find_model(row.model).is_moe == is_moe
        ]
        start = shipped if is_moe else Coefficients()
        found = fit_group(others, start, EXPERTS if is_moe else DENSE)
        errors = np.expm1(log_errors(left, found))
        lines.append(
            f"| {model} | {len(left)} | {np.median(np.abs(errors)):.1%} | "
            f"{np.quantile(np.abs(errors), 0.9):.1%} | {np.median(errors):+.1%} |"
        )
    return "\n".join(lines)


def update_profile(path: Path, document: dict[str, Any]) -> None:
    """Replace the training section of a profile, whatever it was."""
    from ruamel.yaml import YAML

    profile = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    profile["training"] = document[profile["name"].removesuffix("_sglang")]
    write_profile(HardwareProfile.model_validate(profile), path)


def main(arguments: list[str] | None = None) -> int:
    """Fit, write, report."""
    parser = argparse.ArgumentParser(prog="python -m simulator.calibration.training")
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="write nothing; print the error of each model with all others fitted",
    )
    rows = fitted_rows()
    if parser.parse_args(arguments).leave_one_out:
        sys.stdout.write(leave_one_out(comparable_rows()) + "\n")
        return 0
    found = fit(rows)
    fits = fits_by_profile(found)
    document = {name: fit.model_dump(mode="json") for name, fit in fits.items()}
    path = data_root() / "scenarios" / "published" / "megatron" / "fit.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for profile in sorted((data_root() / "hardware_profiles").glob("*.yaml")):
        update_profile(profile, document)
    errors = log_errors(rows, found)
    sys.stdout.write(f"{found}\n")
    sys.stdout.write(
        f"{len(rows)} rows fitted: median {np.median(np.abs(np.expm1(errors))):.1%}, "
        f"90th percentile {np.quantile(np.abs(np.expm1(errors)), 0.9):.1%}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
