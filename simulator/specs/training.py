"""How the policy is updated: passes over the rollouts, precision, efficiency."""

from typing import Literal

from pydantic import Field

from simulator.base import FrozenModel
from simulator.specs.hardware import Precision


class Training(FrozenModel):
    """The trainer. Efficiencies left out come from the hardware profile."""

    precision: Precision = "bf16"
    """Precision of the matrix products in training and log-prob passes."""
    mfu: float | None = Field(default=None, gt=0, le=1)
    """Model FLOP utilisation of a well-tuned pre-training step; default: the profile's [1]."""
    efficiency: float = Field(default=0.6, gt=0, le=1)
    """What an RL trainer keeps of that: unequal lengths, small micro-batches, offload [1]."""
    logprob_passes: int = Field(default=1, ge=0, le=4)
    """Forward passes for log-probabilities: 1 for the old policy, 2 with a reference [1]."""
    recompute: Literal["none", "full"] = "none"
    """``full`` repeats the forward pass inside the backward pass to save memory."""
    optimizer_steps: int = Field(default=1, gt=0, le=100_000)
    """Optimizer steps (mini-batches) in one RL step [1]."""
    optimizer_step_s: float = Field(default=0.1, ge=0)
    """Fixed time of one optimizer step: gradient reduction, update, launch [s]."""
