"""Means and ratios with 95% intervals from independent blocks of a simulation.

A block is a step of a synchronous run, or as many consecutive steps as there are open batches of an
asynchronous one, of one replication. The intervals speak of simulated randomness alone, not of the
error of the cost models.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LEVEL = 0.95
"""Coverage of every interval [1]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or ratio and its interval."""

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """The three numbers by name."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


def estimate_mean(values: FloatArray) -> Estimate:
    """Mean of independent values, shape ``(blocks,)``, with a Student interval.

    One block gives no interval: both ends equal the mean.
    """
    mean = float(values.mean())
    if values.size < 2:
        return Estimate(mean, mean, mean)
    half = _student(values.size) * float(values.std(ddof=1)) / values.size**0.5
    return Estimate(mean, mean - half, mean + half)


def estimate_ratio(numerators: FloatArray, denominators: FloatArray) -> Estimate:
    """Ratio of the means of paired blocks, shape ``(blocks,)``, with a jackknife interval.

    Blocks of a scenario and its baseline share every draw, so pairing removes what they have in
    common.
    """
    total, under = float(numerators.sum()), float(denominators.sum())
    ratio = total / under
    count = numerators.size
    if count < 2:
        return Estimate(ratio, ratio, ratio)
    left_out = (total - numerators) / (under - denominators)
    variance = (count - 1) / count * float(((left_out - left_out.mean()) ** 2).sum())
    half = _student(count) * variance**0.5
    return Estimate(ratio, ratio - half, ratio + half)


def _student(blocks: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(blocks - 1, 0.5 + LEVEL / 2.0))
