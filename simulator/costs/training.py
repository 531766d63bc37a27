"""Seconds of the trainer: log-probability passes and policy updates.

FLOP of the model over what the GPUs deliver. Delivered FLOP are the peak of the training precision
times a model FLOP utilisation measured on well-tuned pre-training, times what an RL trainer keeps
of it. A backward pass costs twice a forward pass; full recomputation adds one forward pass.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.costs.flops import causal_pairs, forward_flops
from simulator.specs.hardware import HardwareProfile
from simulator.specs.model import ModelSpec
from simulator.specs.training import Training
from simulator.units import GIB

_FORWARD_AND_BACKWARD = 3.0
_STATE_BYTES_PER_PARAMETER = 18.0
"""Weights and gradients in 16 bits, master weights and two moments in 32 (mixed-precision Adam),
with two bytes of slack for gathered shards [bytes]."""
_TRAINING_RUNTIME_BYTES = 8.0 * GIB
"""Activations under recomputation, buffers and graphs (assumed) [bytes]."""


@dataclass(frozen=True, slots=True)
class TrainingCost:
    """Seconds of one step's passes over its rollouts [s]."""

    logprob_s: float
    """Forward passes for log-probabilities."""
    training_s: float
    """Forward and backward passes and optimizer steps."""


def training_cost(
    model: ModelSpec,
    profile: HardwareProfile,
    training: Training,
    gpus: int,
    sequence_tokens: npt.NDArray[np.int64],
) -> TrainingCost:
    """Price the trainer's work on one batch.

    Parameters
    ----------
    gpus
        GPUs of the trainer [1].
    sequence_tokens
        Prompt and response of each rollout, shape ``(rollouts,)`` [tokens].
    """
    tokens = float(sequence_tokens.sum())
    forward = float(forward_flops(model, tokens, float(causal_pairs(sequence_tokens)), tokens))
    rate = gpus * delivered_flops_per_s(model, profile, training)
    recompute = 1.0 if training.recompute == "full" else 0.0
    return TrainingCost(
        logprob_s=training.logprob_passes * forward / rate,
        training_s=(_FORWARD_AND_BACKWARD + recompute) * forward / rate
        + training.optimizer_steps * training.optimizer_step_s,
    )


def delivered_flops_per_s(model: ModelSpec, profile: HardwareProfile, training: Training) -> float:
    """Model FLOP that one GPU delivers in training [FLOP/s]."""
    peak = profile.device.peak_flops_per_s[training.precision]
    rate = profile.training.mfu[training.precision]
    mfu = training.mfu or (rate.moe if model.is_moe else rate.dense)
    return peak * mfu * training.efficiency


def training_state_bytes(model: ModelSpec, gpus: int) -> float:
    """Bytes of one GPU when weights, gradients and optimizer are spread over all [bytes]."""
    return _STATE_BYTES_PER_PARAMETER * model.parameters / gpus + _TRAINING_RUNTIME_BYTES
