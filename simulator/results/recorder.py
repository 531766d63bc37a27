"""What happened in one simulated run, appended as it happens and read only afterwards."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(slots=True)
class StepRecord:
    """Instants of one batch on its way through the loop [s]."""

    step: int
    """Batch, and the update that trains it [1]."""
    begin_s: float = 0.0
    """The trainer turns to this batch: the end of the step before."""
    opened_s: float = 0.0
    """Prompts begin to be drawn."""
    submitted_s: float = 0.0
    """Prompts reach the engines."""
    generated_s: float = 0.0
    """The last rollout is complete."""
    rewarded_s: float = 0.0
    """The last reward is known."""
    scored_s: float = 0.0
    """Log-probabilities are done."""
    trained_s: float = 0.0
    """The update is done."""
    end_s: float = 0.0
    """New weights are with the engines."""


@dataclass(frozen=True, slots=True)
class RolloutChunk:
    """Rollouts that completed on one replica, arrays of shape ``(n,)``."""

    batch: IntArray
    """Training batch [1]."""
    rollout: IntArray
    """Index inside the batch [1]."""
    completed_s: FloatArray
    """When the rollout was complete [s]."""


@dataclass(frozen=True, slots=True)
class BatchChunk:
    """Running batch of one replica over time, arrays of shape ``(segments,)``."""

    replica: int
    """Which replica [1]."""
    start_s: FloatArray
    """When the batch became what it is [s]."""
    end_s: FloatArray
    """When it changed again [s]."""
    running: IntArray
    """Decoding sequences [1]."""
    waiting: IntArray
    """Sequences waiting for admission [1]."""


@dataclass(slots=True)
class Recorder:
    """Append-only record of one run."""

    steps: list[StepRecord] = field(default_factory=list)
    rollouts: list[RolloutChunk] = field(default_factory=list)
    batches: list[BatchChunk] = field(default_factory=list)
    admissions: list[tuple[int, int, int, float]] = field(default_factory=list)
    """(batch, rollout, weight version, second) of each first admission."""
    preemptions: int = 0
    """Sequences thrown out of KV memory and recomputed [1]."""
    draft_s: float = 0.0
    """Replica-seconds spent on drafting [s]."""
    software_s: float = 0.0
    """Replica-seconds spent on engine software [s]."""
    busy_s: float = 0.0
    """Replica-seconds with something running [s]."""
