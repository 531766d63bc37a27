"""How long prompts and responses are.

A law turns standard normal variates into token counts by a monotone function, so that two
scenarios that share variates share the order of their rollouts. Response laws describe the
length that the model *would* write; the workload's limit cuts it, and what was cut is reported.
"""

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import gammaincinv, ndtr, ndtri

from simulator.base import FrozenModel

FloatArray = npt.NDArray[np.float64]

_TAIL = 1e-12


class FixedLength(FrozenModel):
    """Every answer has the same length."""

    kind: Literal["fixed"] = "fixed"
    tokens: float = Field(gt=0)
    """Length of each answer [tokens]."""

    def length_tokens(self, normal: FloatArray) -> FloatArray:
        """Constant, whatever the variates, shape of ``normal`` [tokens]."""
        return np.full(normal.shape, self.tokens)

    def mean_tokens(self) -> float:
        """The constant [tokens]."""
        return self.tokens


class LognormalLength(FrozenModel):
    """Logarithm of the length is normal: the usual shape of reasoning answers."""

    kind: Literal["lognormal"] = "lognormal"
    mean: float = Field(gt=0)
    """Mean before the limit cuts [tokens]."""
    sigma: float = Field(ge=0, le=4)
    """Standard deviation of the logarithm [1]."""

    def length_tokens(self, normal: FloatArray) -> FloatArray:
        """``mean * exp(sigma z - sigma^2 / 2)``, shape of ``normal`` [tokens]."""
        return self.mean * np.exp(self.sigma * normal - 0.5 * self.sigma**2)

    def mean_tokens(self) -> float:
        """Mean before the limit cuts [tokens]."""
        return self.mean


class GammaLength(FrozenModel):
    """Gamma law: a lighter tail than the lognormal at equal mean and spread."""

    kind: Literal["gamma"] = "gamma"
    mean: float = Field(gt=0)
    """Mean before the limit cuts [tokens]."""
    shape: float = Field(gt=0, le=1e6)
    """Shape parameter: the coefficient of variation is ``shape ** -0.5`` [1]."""

    def length_tokens(self, normal: FloatArray) -> FloatArray:
        """Quantile of the gamma law at the normal's probability, shape of ``normal`` [tokens]."""
        probability = np.clip(ndtr(normal), _TAIL, 1.0 - _TAIL)
        quantile: FloatArray = gammaincinv(self.shape, probability)
        return np.asarray(quantile * (self.mean / self.shape))

    def mean_tokens(self) -> float:
        """Mean before the limit cuts [tokens]."""
        return self.mean


class EmpiricalLength(FrozenModel):
    """Measured lengths, linearly interpolated between their order statistics."""

    kind: Literal["empirical"] = "empirical"
    samples: tuple[Annotated[float, Field(gt=0)], ...] = Field(min_length=1, max_length=1_000_000)
    """Observed lengths in any order [tokens]."""

    def length_tokens(self, normal: FloatArray) -> FloatArray:
        """Empirical quantile at the normal's probability, shape of ``normal`` [tokens]."""
        ordered = np.sort(np.asarray(self.samples, dtype=np.float64))
        positions = (np.arange(ordered.size) + 0.5) / ordered.size
        lengths: FloatArray = np.interp(ndtr(normal), positions, ordered)
        return lengths

    def mean_tokens(self) -> float:
        """Mean of the observations [tokens]."""
        return float(np.mean(self.samples))


LengthLaw = Annotated[
    FixedLength | LognormalLength | GammaLength | EmpiricalLength, Field(discriminator="kind")
]
"""Any law of lengths; ``kind`` tells which."""


class GroupCorrelation(FrozenModel):
    """Answers to one prompt resemble one another: part of the normal variate is shared."""

    within_group: float = Field(default=0.0, ge=0, le=1)
    """Correlation of the normal variates of two answers to one prompt [1]."""

    def mix(self, prompt_normal: FloatArray, sample_normal: FloatArray) -> FloatArray:
        """Standard normal variates with the wanted correlation inside a group.

        Parameters
        ----------
        prompt_normal
            One variate a prompt, repeated for its samples, shape ``(rollouts,)`` [1].
        sample_normal
            One variate a rollout, shape ``(rollouts,)`` [1].
        """
        shared = self.within_group
        mixed: FloatArray = np.sqrt(shared) * prompt_normal + np.sqrt(1.0 - shared) * sample_normal
        return mixed


class TruncatedLength(FrozenModel):
    """A law seen through a limit: what the engine really generates."""

    law: LengthLaw
    """Length that the model would write."""
    limit_tokens: int = Field(gt=0)
    """Answers stop here [tokens]."""

    def length_tokens(self, normal: FloatArray) -> npt.NDArray[np.int64]:
        """Whole tokens from 1 to the limit, shape of ``normal`` [tokens]."""
        wanted = np.rint(self.law.length_tokens(normal))
        return np.clip(wanted, 1, self.limit_tokens).astype(np.int64)

    def is_clipped(self, normal: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the limit cut the answer, shape of ``normal``."""
        clipped: npt.NDArray[np.bool_] = np.rint(self.law.length_tokens(normal)) > self.limit_tokens
        return clipped

    def typical_lengths(self, count: int) -> npt.NDArray[np.int64]:
        """Lengths at ``count`` evenly spaced probabilities, ascending [tokens]."""
        probabilities = (np.arange(count) + 0.5) / count
        return self.length_tokens(ndtri(probabilities))
