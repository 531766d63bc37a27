"""Least squares for numbers that are seconds and may be 0: what engines add to kernels."""

from collections.abc import Callable

import numpy as np

from simulator.calibration.fitting import FloatArray, rounded
from simulator.specs.hardware import EngineSoftware
from simulator.units import MICRO

_ROBUST_SCALE = 0.05
_MOST_S = 1e-2

NO_ENGINE = EngineSoftware(
    step_s=0.0,
    request_s=0.0,
    speculative_round_s=0.0,
    verify_token_s=0.0,
    draft_pass_s=0.0,
    captured_tokens=1,
    eager_step_s=0.0,
    eager_draft_pass_s=0.0,
    ngram_request_s=0.0,
    ngram_context_token_s=0.0,
    source="",
)
"""An engine that takes no time."""


def fit_seconds(
    residuals: Callable[[FloatArray], FloatArray], start: FloatArray, least: FloatArray
) -> FloatArray:
    """Seconds that minimise the residuals, rounded to what a profile holds; searched in us."""
    from scipy.optimize import least_squares

    fit = least_squares(
        lambda micros: residuals(micros * MICRO),
        start / MICRO,
        bounds=(least / MICRO, _MOST_S / MICRO),
        loss="soft_l1",
        f_scale=_ROBUST_SCALE,
    )
    return np.asarray(np.sign(fit.x) * rounded(np.abs(fit.x) * MICRO))
