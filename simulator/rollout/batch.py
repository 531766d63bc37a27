"""A replica's batch: where its sequences stand, and how it will evolve, counted in iterations."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from simulator.rollout.sequence import Sequence

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(slots=True)
class BatchState:
    """Sequences of one replica: decoding or prefilling (in order of admission) and waiting."""

    running: list[Sequence] = field(default_factory=list)
    waiting: deque[Sequence] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        """Whether the replica has nothing to do."""
        return not self.running and not self.waiting


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Iterations of a replica, as segments in which the batch does not change."""

    iterations: IntArray
    """Iterations of each segment, shape ``(segments,)`` [1]."""
    sequences: IntArray
    """Decoding sequences in each segment, shape ``(segments,)`` [1]."""
    context_tokens: FloatArray
    """Mean context of a decoding sequence half-way through, shape ``(segments,)`` [tokens]."""
    context_spread: FloatArray
    """Standard deviation of that mean over the segment's iterations [tokens]."""
    prefill_tokens: IntArray
    """Prompt tokens computed in each iteration of the segment, shape ``(segments,)`` [tokens]."""
    prefill_context: FloatArray
    """Sum over those tokens of the tokens they attend to, shape ``(segments,)`` [tokens^2]."""
    waiting: IntArray
    """Sequences waiting for admission in each segment, shape ``(segments,)`` [1]."""
    completed: list[Sequence]
    """Sequences in order of completion."""
    completed_after: IntArray
    """Segment at whose end each completes, shape ``(completed,)`` [1]."""
    admitted: list[Sequence]
    """Sequences in order of their first admission."""
    admitted_before: IntArray
    """Segment before which each is admitted, shape ``(admitted,)`` [1]."""
    preemptions: int
    """Sequences thrown out of memory [1]."""
    end: BatchState
    """What is left when the planned iterations are over."""
