"""Least squares on logarithmic error, with the error on shapes that the fit never saw.

Coefficients are searched as logarithms, so that they stay positive, from several starts. Shapes are
held out whole, by a hash of the shape: a fit that only interpolates between the rows of one shape
gains nothing from it.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simulator.errors import CalibrationError
from simulator.specs.kernels import Provenance

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
Model = Callable[[FloatArray, "pd.DataFrame"], FloatArray]
"""Seconds of each row, from the coefficients."""

_HELD_OUT = 0.3
_MAX_TRAINING_ROWS = 8_000
_ROBUST_SCALE = 0.1
_DIGITS = 5
_VANISHING = 1e-14
"""Below what matters in any unit of a coefficient: 1e-14 s for each of 1e6 elements is 10 ns."""
_LOG_LIMIT = 40.0


@dataclass(frozen=True, slots=True)
class FitResult:
    """Coefficients and how well they hold out."""

    coefficients: FloatArray
    heldout_points: int
    heldout_median_error: float
    heldout_p90_error: float


def is_held_out(rows: "pd.DataFrame", shape: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each row belongs to a shape that is kept out of the fit.

    Three in ten of the shapes are: those whose hash is lowest.
    """
    if rows.empty:
        return np.zeros(0, dtype=np.bool_)
    groups = rows.groupby(list(shape), sort=False).ngroup().to_numpy()
    keys = rows.loc[~rows.duplicated(list(shape)), list(shape)].itertuples(index=False)
    order = np.argsort([_hash(tuple(key)) for key in keys])
    verdicts = np.zeros(len(order), dtype=np.bool_)
    verdicts[order[: max(1, round(_HELD_OUT * len(order)))]] = True
    held: npt.NDArray[np.bool_] = verdicts[groups]
    return held


def _hash(key: tuple[object, ...]) -> int:
    text = ",".join(str(value) for value in key)
    # 62 bits, so that numpy keeps them exact.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 2


def fit_coefficients(
    rows: "pd.DataFrame", shape: Sequence[str], model: Model, starts: Sequence[Sequence[float]]
) -> FitResult:
    """Fit ``model`` to the column ``seconds`` and judge it on the shapes held out.

    The coefficients are then rounded to what a profile holds, and judged rounded.

    Raises
    ------
    CalibrationError
        If there are too few rows or shapes to fit and to judge.
    """
    from scipy.optimize import least_squares

    held = is_held_out(rows, shape)
    training, test = rows[~held], rows[held]
    if len(training) < 2 * len(starts[0]) or test.empty:
        raise CalibrationError(
            f"{len(training)} rows to fit and {len(test)} to judge are too few for "
            f"{len(starts[0])} coefficients"
        )
    if len(training) > _MAX_TRAINING_ROWS:
        training = training.sample(_MAX_TRAINING_ROWS, random_state=0)
    target = np.log(training["seconds"].to_numpy())

    def residuals(logs: FloatArray) -> FloatArray:
        predicted = model(np.exp(np.clip(logs, -_LOG_LIMIT, _LOG_LIMIT)), training)
        return np.asarray(np.log(predicted) - target)

    fits = [
        least_squares(residuals, np.log(start), loss="soft_l1", f_scale=_ROBUST_SCALE, max_nfev=400)
        for start in starts
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    coefficients = rounded(np.exp(np.clip(best.x, -_LOG_LIMIT, _LOG_LIMIT)))
    error = np.abs(model(coefficients, test) / test["seconds"].to_numpy() - 1.0)
    return FitResult(
        coefficients, len(test), float(np.median(error)), float(np.quantile(error, 0.9))
    )


def rounded(values: FloatArray) -> FloatArray:
    """The values to five significant digits, far below their error; what vanishes is 0."""
    kept = np.where(values < _VANISHING, 0.0, values)
    return np.asarray([float(f"{value:.{_DIGITS}g}") for value in kept])


def provenance(
    rows: "pd.DataFrame",
    result: FitResult,
    *,
    source: str,
    table: str,
    kernel: str,
    ranges: Sequence[str],
    note: str = "",
) -> Provenance:
    """What a profile tells about a fitted entry."""
    return Provenance(
        source=source,
        table=table,
        kernel=kernel,
        points=len(rows),
        heldout_points=result.heldout_points,
        heldout_median_error=round(result.heldout_median_error, 4),
        heldout_p90_error=round(result.heldout_p90_error, 4),
        fit_range={name: (float(rows[name].min()), float(rows[name].max())) for name in ranges},
        note=note,
    )
