"""Seconds of the trainer on one batch: log-probability passes and policy updates.

Every mini-batch is dealt to the data-parallel ranks, packed into micro-batches and run through the
pipeline; ranks wait for the most loaded one. What an RL trainer loses against well-tuned
pre-training is one factor, ``training.efficiency``.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from simulator.costs.flops import forward_flops
from simulator.costs.packing import Loads, pack
from simulator.costs.trainer import Prices, Trainer

_SHARDED_FORWARD = 1.0
_SHARDED_UPDATE = 4.0
"""Sharded weights: gathered forward and backward, 32-bit gradients reduced [gathers]."""


@dataclass(frozen=True, slots=True)
class TrainingCost:
    """Seconds of one step's passes over its rollouts [s]."""

    logprob_s: float
    """Forward passes for log-probabilities."""
    training_s: float
    """Forward and backward passes and optimizer steps."""


def training_cost(trainer: Trainer, sequence_tokens: npt.NDArray[np.int64]) -> TrainingCost:
    """Price the trainer's work on one batch.

    Parameters
    ----------
    sequence_tokens
        Prompt and response of each rollout, in the order of the batch, shape ``(rollouts,)``
        [tokens].
    """
    training = trainer.training
    parts = np.array_split(sequence_tokens, min(training.optimizer_steps, sequence_tokens.size))
    mini_batches = [deal_and_pack(trainer, part) for part in parts]
    update_s = sum(update_s_of(trainer, loads) for loads in mini_batches)
    whole = mini_batches[0] if len(parts) == 1 else deal_and_pack(trainer, sequence_tokens)
    return TrainingCost(
        logprob_s=training.logprob_passes * logprob_pass_s(trainer, whole) / training.efficiency,
        training_s=update_s / training.efficiency
        + training.optimizer_steps * (training.optimizer_step_s + trainer.optimizer_s()),
    )


def deal_and_pack(trainer: Trainer, sequence_tokens: npt.NDArray[np.int64]) -> Loads:
    """The loads of one mini-batch on the trainer's data-parallel ranks."""
    training, prices = trainer.training, trainer.forward()
    pair_s = prices.pair_s + prices.windowed_pair_s
    return pack(
        sequence_tokens,
        trainer.ranks.data,
        training.micro_batch_tokens,
        window_tokens=trainer.window_tokens,
        pair_tokens=pair_s / prices.token_s,
        is_padded=training.packing == "padded",
        is_balanced=training.balance == "work",
    )


def logprob_pass_s(trainer: Trainer, loads: Loads) -> float:
    """One forward pass over a batch [s]."""
    if trainer.training.mfu is not None:
        return _flops_s(trainer, loads, 1.0)
    return _pipelined_s(trainer, trainer.forward(), loads, _SHARDED_FORWARD)


def update_s_of(trainer: Trainer, loads: Loads) -> float:
    """Passes and gradient traffic of one mini-batch, without the optimizer [s]."""
    if trainer.training.mfu is not None:
        again = 1.0 if trainer.ranks.recompute == "full" else 0.0
        return _flops_s(trainer, loads, 3.0 + again)
    prices = trainer.forward_and_backward()
    micro_batch_s = float(prices.seconds(loads).max()) / loads.micro_batches
    update_s = _pipelined_s(trainer, prices, loads, _SHARDED_UPDATE)
    if trainer.ranks.sharding == "full":
        return update_s
    return update_s + trainer.reduction_s(micro_batch_s)


def _pipelined_s(trainer: Trainer, prices: Prices, loads: Loads, gathers: float) -> float:
    """Micro-batches through the stages: work x (1 + (p - 1) / (v m)) of the fullest rank [s]."""
    ranks, count = trainer.ranks, loads.micro_batches
    work_s = float(prices.seconds(loads).max())
    work_s += count * trainer.sharded_weights_s(gathers, work_s / count)
    return work_s * (1.0 + (ranks.pipeline - 1) / (ranks.virtual_pipeline * count))


def _flops_s(trainer: Trainer, loads: Loads, passes: float) -> float:
    """FLOP of the fullest rank over peak x ``training.mfu`` [s]."""
    training, ranks = trainer.training, trainer.ranks
    flops = forward_flops(
        trainer.model, loads.tokens, loads.pairs, loads.tokens, loads.windowed_pairs
    )
    gpus = ranks.tensor * ranks.context * ranks.pipeline
    peak = trainer.hardware.device.peak_flops_per_s[training.precision]
    return passes * float(flops.max()) / (gpus * peak * (training.mfu or 1.0))


def without_losses(trainer: Trainer) -> Trainer:
    """The same trainer as well tuned as the pre-training it was fitted on."""
    training = trainer.training.model_copy(update={"efficiency": 1.0, "optimizer_step_s": 0.0})
    return replace(trainer, training=training)
