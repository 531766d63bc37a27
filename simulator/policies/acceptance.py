"""How many tokens one verify round emits.

A round proposes ``k`` tokens, accepts a prefix of them and always adds one of the target's own,
so it emits between 1 and ``k + 1``; the mean is the *acceptance length* (bonus included). Laws
here say how it is spread inside a round and over requests. They do not say what a round costs.
"""

from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator
from scipy.special import betaincinv, ndtr

from simulator.base import FrozenModel

FloatArray = npt.NDArray[np.float64]

_ALPHA_GRID = 1.0 - np.linspace(1.0, 0.0, 4001) ** 2


def geometric_acceptance_length(alpha: FloatArray, draft_length: int) -> FloatArray:
    """Mean tokens a round when each drafted token is accepted with probability ``alpha``.

    ``(1 - alpha^(k+1)) / (1 - alpha)`` (Leviathan et al., arXiv 2211.17192, equation 1), summed
    as a power series so that ``alpha = 1`` needs no special case.

    >>> float(geometric_acceptance_length(np.array(0.5), 3))
    1.875
    """
    powers = np.power.outer(np.asarray(alpha, dtype=np.float64), np.arange(draft_length + 1))
    total: FloatArray = powers.sum(axis=-1)
    return total


def geometric_acceptance_rate(length: FloatArray, draft_length: int) -> FloatArray:
    """The ``alpha`` whose acceptance length is ``length``; inverse of the above [1].

    Interpolated on a grid that is dense near 1; exact at both ends.
    """
    grid = geometric_acceptance_length(_ALPHA_GRID, draft_length)
    return np.interp(length, grid, _ALPHA_GRID)


def geometric_second_moment(length: FloatArray, draft_length: int) -> FloatArray:
    """Mean square of the tokens a round emits under geometric acceptance [tokens^2].

    ``sum (2j + 1) P(more than j tokens)`` with ``P(more than j) = alpha^j``.
    """
    alpha = geometric_acceptance_rate(length, draft_length)
    exponents = np.arange(draft_length + 1)
    powers = np.power.outer(alpha, exponents)
    moment: FloatArray = (powers * (2 * exponents + 1)).sum(axis=-1)
    return moment


def _refuse_length_outside(length: float, draft_length: int, key: str) -> None:
    if not 1.0 <= length <= draft_length + 1:
        raise ValueError(
            f"{key}: an acceptance length of {length:g} cannot be reached with draft_length "
            f"{draft_length}; a round emits 1 to {draft_length + 1} tokens (bonus included)"
        )


class MeanAcceptance(FrozenModel):
    """One acceptance length for every request; inside a round, acceptance is geometric."""

    kind: Literal["mean"] = "mean"
    length: float = Field(ge=1)
    """Mean tokens a verify round emits, bonus included [tokens]."""

    def check(self, draft_length: int) -> None:
        """Raise ``ValueError`` unless ``draft_length`` can reach this law."""
        _refuse_length_outside(self.length, draft_length, "acceptance_length")

    def request_lengths(self, normal: FloatArray, draft_length: int) -> FloatArray:
        """Acceptance length of each request, shape of ``normal`` [tokens]."""
        return np.full(normal.shape, min(self.length, draft_length + 1.0))

    def second_moments(self, lengths: FloatArray, draft_length: int) -> FloatArray:
        """Mean square of a round's tokens for requests of these lengths [tokens^2]."""
        return geometric_second_moment(lengths, draft_length)


class PositionalAcceptance(FrozenModel):
    """Measured rates by draft position, as vLLM logs them: P(position i is accepted)."""

    kind: Literal["positional"] = "positional"
    rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(min_length=1, max_length=256)
    """Unconditional acceptance by position, never increasing [1]."""

    @model_validator(mode="after")
    def _never_increasing(self) -> Self:
        if any(later > earlier for earlier, later in zip(self.rates, self.rates[1:], strict=False)):
            raise ValueError(
                "rates must never increase: position i + 1 can only be accepted if position i was; "
                "conditional rates have to be multiplied up first"
            )
        return self

    def check(self, draft_length: int) -> None:
        """Raise ``ValueError`` unless there is a rate for every drafted position."""
        if draft_length > len(self.rates):
            raise ValueError(
                f"acceptance_rates: {len(self.rates)} rates cannot describe draft_length "
                f"{draft_length}; give one rate for each drafted position"
            )

    def _survival(self, draft_length: int) -> FloatArray:
        return np.concatenate([[1.0], np.asarray(self.rates[:draft_length], dtype=np.float64)])

    def request_lengths(self, normal: FloatArray, draft_length: int) -> FloatArray:
        """``1 + sum of the rates`` for each request, shape of ``normal`` [tokens]."""
        return np.full(normal.shape, self._survival(draft_length).sum())

    def second_moments(self, lengths: FloatArray, draft_length: int) -> FloatArray:
        """Mean square of a round's tokens, shape of ``lengths`` [tokens^2]."""
        survival = self._survival(draft_length)
        moment = float((survival * (2 * np.arange(survival.size) + 1)).sum())
        return np.full(lengths.shape, moment)


class BetaAcceptance(FrozenModel):
    """Requests differ: their acceptance lengths follow a beta law between 1 and ``k + 1``."""

    kind: Literal["beta"] = "beta"
    mean: float = Field(ge=1)
    """Mean over requests of their acceptance length, bonus included [tokens]."""
    std: float = Field(gt=0)
    """Standard deviation over requests of their acceptance length [tokens]."""

    def check(self, draft_length: int) -> None:
        """Raise ``ValueError`` unless mean and spread fit between 1 and ``k + 1``."""
        _refuse_length_outside(self.mean, draft_length, "acceptance.mean")
        centre = (self.mean - 1.0) / draft_length
        if (self.std / draft_length) ** 2 >= centre * (1.0 - centre):
            raise ValueError(
                f"acceptance.std: {self.std:g} is too wide for a mean of {self.mean:g} at "
                f"draft_length {draft_length}; it must stay below "
                f"{draft_length * (centre * (1.0 - centre)) ** 0.5:.3g}"
            )

    def request_lengths(self, normal: FloatArray, draft_length: int) -> FloatArray:
        """Beta quantile at the normal's probability, shape of ``normal`` [tokens]."""
        centre = (self.mean - 1.0) / draft_length
        concentration = centre * (1.0 - centre) / (self.std / draft_length) ** 2 - 1.0
        share: FloatArray = betaincinv(
            centre * concentration, (1.0 - centre) * concentration, ndtr(normal)
        )
        return 1.0 + draft_length * share

    def second_moments(self, lengths: FloatArray, draft_length: int) -> FloatArray:
        """Mean square of a round's tokens for requests of these lengths [tokens^2]."""
        return geometric_second_moment(lengths, draft_length)


class EmpiricalAcceptance(FrozenModel):
    """Requests differ as these measured ones did."""

    kind: Literal["empirical"] = "empirical"
    lengths: tuple[Annotated[float, Field(ge=1)], ...] = Field(min_length=1, max_length=1_000_000)
    """Acceptance lengths of measured requests, in any order [tokens]."""

    def check(self, draft_length: int) -> None:
        """Raise ``ValueError`` if a measured request emitted more than ``k + 1`` a round."""
        _refuse_length_outside(max(self.lengths), draft_length, "acceptance.lengths")

    def request_lengths(self, normal: FloatArray, draft_length: int) -> FloatArray:
        """Empirical quantile at the normal's probability, shape of ``normal`` [tokens]."""
        ordered = np.sort(np.asarray(self.lengths, dtype=np.float64))
        positions = (np.arange(ordered.size) + 0.5) / ordered.size
        lengths: FloatArray = np.interp(ndtr(normal), positions, ordered)
        return np.minimum(lengths, draft_length + 1.0)

    def second_moments(self, lengths: FloatArray, draft_length: int) -> FloatArray:
        """Mean square of a round's tokens for requests of these lengths [tokens^2]."""
        return geometric_second_moment(lengths, draft_length)


RequestAcceptance = Annotated[
    MeanAcceptance | PositionalAcceptance | BetaAcceptance | EmpiricalAcceptance,
    Field(discriminator="kind"),
]
"""Any acceptance law; ``kind`` tells which."""


def verify_rounds(
    decode_tokens: npt.NDArray[np.int64],
    lengths: FloatArray,
    second_moments: FloatArray,
    normal: FloatArray,
    draft_length: int,
) -> npt.NDArray[np.int64]:
    """Verify rounds until each request has emitted its tokens.

    The number of rounds is the first passage of a renewal sum: its mean is
    ``(D + (E[N^2]/a - 1)/2) / a`` (Wald, with the mean overshoot of a lattice law) and its
    variance ``D var(N) / a^3``; drawn as a rounded normal between the two certain bounds.

    Parameters
    ----------
    decode_tokens
        Tokens to emit after the first, which the prefill gives, shape ``(n,)`` [tokens].
    lengths, second_moments
        Mean and mean square of a round's tokens, shape ``(n,)`` [tokens, tokens^2].
    normal
        Standard normal variates, shape ``(n,)`` [1].
    draft_length
        Tokens proposed a round; 0 emits exactly one token a round [tokens].
    """
    variance = np.maximum(second_moments - lengths**2, 0.0)
    overshoot = (second_moments / lengths - 1.0) / 2.0
    mean_rounds = (decode_tokens + overshoot) / lengths
    spread = np.sqrt(decode_tokens * variance / lengths**3)
    fewest = np.ceil(decode_tokens / (draft_length + 1))
    rounds = np.clip(np.ceil(mean_rounds + spread * normal - 0.5), fewest, decode_tokens)
    return rounds.astype(np.int64)
