"""Base random variates, drawn by what they are for and never by who asks first.

All variates of one purpose for one step of one replication come from one generator, for every
rollout of the step at once. Two scenarios that differ in one knob therefore share every draw
(common random numbers), and nothing depends on scheduling, workers or order.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_MAX_SPAWN_WORD = 2**32


class Purpose(IntEnum):
    """What a variate decides. Numbers are part of the contract: never renumber, only append."""

    PROMPT_LENGTH = 1
    RESPONSE_LENGTH_PROMPT = 2
    """Share of a response's length that its whole group has in common."""
    RESPONSE_LENGTH_SAMPLE = 3
    ACCEPTANCE_REQUEST = 4
    """How predictable one request is for the drafter."""
    ACCEPTANCE_ROUNDS = 5
    """Luck of one request's verify rounds, given how predictable it is."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Source of base variates for one replication.

    Parameters
    ----------
    seed
        Non-negative user seed [1].
    replication
        Which of several independent repetitions this is [1].
    """

    seed: int
    replication: int

    def normal(self, purpose: Purpose, step: int, count: int) -> FloatArray:
        """Independent standard normal variates, shape ``(count,)``."""
        key = (self.replication, int(purpose), step)
        sequence = np.random.SeedSequence(self.seed % _MAX_SPAWN_WORD, spawn_key=key)
        return np.random.default_rng(sequence).standard_normal(count)
