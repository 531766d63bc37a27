"""How far the cost models may be off, carried into the intervals of a projection.

A profile states the standard deviation of the logarithm of measured over modelled for each kind of
cost. To first order the logarithm of a step time moves by a phase's share of the step times the
logarithm of that phase's error, and phases err independently. A scenario and its baseline on the
same engine share the errors of what they have in common, so those cancel in a speedup; what
remains is the error of verifying relative to decoding.
"""

from dataclasses import dataclass
from math import exp, hypot, log1p

from simulator.results.estimates import Estimate
from simulator.specs.hardware import ModelError

_QUANTILE = 1.96
"""Standard deviations on each side that hold 95% of a normal law [1]."""


@dataclass(frozen=True, slots=True)
class StepShares:
    """What an arm's step rests on: shares of the step and how its generation is made."""

    error: ModelError
    training_error: float
    """Of the logarithm of log-probabilities and training [1]."""
    generation: float
    """Exposed generation over step time [1]."""
    training: float
    """Log-probabilities and training over step time [1]."""
    weight_sync: float
    """Weight sync over step time [1]."""
    is_speculative: bool
    """Whether rounds verify drafted tokens."""

    @property
    def generation_sigma(self) -> float:
        """Of the logarithm of generation time [1]."""
        return hypot(self.error.generation, self.speculation_sigma)

    @property
    def speculation_sigma(self) -> float:
        """Of the logarithm of a round that verifies over one that decodes [1]."""
        return self.error.speculation if self.is_speculative else 0.0

    @property
    def step_sigma(self) -> float:
        """Of the logarithm of the step time [1]."""
        return hypot(
            self.generation * self.generation_sigma,
            self.training * self.training_error,
            self.weight_sync * self.error.weight_sync,
        )

    @property
    def share_sigma(self) -> float:
        """Of the logarithm of the generation share [1]."""
        rest = 1.0 - self.generation
        return rest * hypot(self.generation_sigma, self.training_error)


def rollout_speedup_sigma(base: StepShares, arm: StepShares, *, shares_engine: bool) -> float:
    """Of the logarithm of the ratio of two generation times [1].

    Parameters
    ----------
    shares_engine
        Whether both run the same model on the same engine and GPUs, so that its error cancels.
    """
    own = 0.0 if shares_engine else hypot(base.error.generation, arm.error.generation)
    return hypot(own, base.speculation_sigma, arm.speculation_sigma)


def step_speedup_sigma(
    base: StepShares, arm: StepShares, *, shares_engine: bool, shares_trainer: bool
) -> float:
    """Of the logarithm of the ratio of two step times [1]."""
    return hypot(
        _common(
            base.generation * base.error.generation,
            arm.generation * arm.error.generation,
            cancels=shares_engine,
        ),
        base.generation * base.speculation_sigma,
        arm.generation * arm.speculation_sigma,
        _common(
            base.training * base.training_error,
            arm.training * arm.training_error,
            cancels=shares_trainer,
        ),
        _common(
            base.weight_sync * base.error.weight_sync,
            arm.weight_sync * arm.error.weight_sync,
            cancels=shares_engine,
        ),
    )


def _common(first: float, second: float, *, cancels: bool) -> float:
    return abs(first - second) if cancels else hypot(first, second)


def widened(estimate: Estimate, sigma: float) -> Estimate:
    """The estimate with the cost models' error joined to its interval, which stays positive.

    Both errors are taken as independent normal laws of the logarithm.
    """
    if estimate.mean <= 0.0 or sigma == 0.0:
        return estimate
    above = log1p(max(estimate.high - estimate.mean, 0.0) / estimate.mean)
    half = hypot(above, _QUANTILE * sigma)
    return Estimate(estimate.mean, estimate.mean * exp(-half), estimate.mean * exp(half))
