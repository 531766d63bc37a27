"""What fits on a GPU of the trainer: weights, gradients, optimizer state, activations, logits.

Mixed-precision Adam: weights in 16 bits, gradients in 32, master weights and two moments in 32
(Rajbhandari et al., ZeRO, arXiv 1910.02054, section 3.1, with 32-bit gradients as Megatron
accumulates them). Activations follow Korthikanti et al., arXiv 2205.05198, section 4, with
sequence-parallel norms and without stored attention scores. All figures are bytes of one GPU.
"""

from dataclasses import dataclass

from simulator.costs.trainer import Trainer
from simulator.units import GIB, format_gib

_WEIGHT_BYTES = 2.0
_GRADIENT_BYTES = 4.0
_OPTIMIZER_BYTES = 12.0
_ACTIVATION_BYTES = 2.0
_LOGIT_BYTES = 6.0
"""Logits in 16 bits and their 32-bit copy, which the gradient overwrites [bytes]."""
_RUNTIME_BYTES = 6.0 * GIB
"""CUDA context, NCCL buffers, workspaces, fragmentation (assumed) [bytes]."""


@dataclass(frozen=True, slots=True)
class TrainerMemory:
    """Memory of one GPU of the trainer [bytes]."""

    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float
    """What the backward pass waits for, of all micro-batches in flight."""
    logit_bytes: float
    runtime_bytes: float = _RUNTIME_BYTES

    @property
    def state_bytes(self) -> float:
        """Weights, gradients and optimizer."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes

    @property
    def total_bytes(self) -> float:
        """Everything."""
        working = self.activation_bytes + self.logit_bytes + self.runtime_bytes
        return self.state_bytes + working

    def missing_bytes(self, hbm_bytes: float) -> float:
        """Bytes that one GPU lacks; 0 if everything fits."""
        return max(self.total_bytes - hbm_bytes, 0.0)

    def describe(self) -> str:
        """The budget of one GPU in words."""
        return (
            f"weights {format_gib(self.weight_bytes)}, gradients "
            f"{format_gib(self.gradient_bytes)}, optimizer {format_gib(self.optimizer_bytes)}, "
            f"activations {format_gib(self.activation_bytes)}, logits "
            f"{format_gib(self.logit_bytes)}, runtime {format_gib(self.runtime_bytes)}"
        )


def trainer_memory(trainer: Trainer, longest_tokens: float) -> TrainerMemory:
    """Memory of one GPU of the trainer.

    Parameters
    ----------
    longest_tokens
        Longest sequence of the workload; a micro-batch holds it whole [tokens].

    Notes
    -----
    Optimizer state is divided among the copies of what it belongs to. With sharded weights, so are
    weights and gradients, and one layer of each is whole while it works.
    """
    model, ranks = trainer.model, trainer.ranks
    dense, experts = trainer.stage_parameters
    sharded = dense / (ranks.data * ranks.context) + experts / ranks.expert_data
    held, whole_layer = dense + experts, 0.0
    if ranks.sharding == "full":
        whole_layer = held * ranks.pipeline / model.num_layers
        held = sharded
    tokens = max(float(trainer.training.micro_batch_tokens), longest_tokens)
    local = tokens / (ranks.tensor * ranks.context)
    return TrainerMemory(
        weight_bytes=_WEIGHT_BYTES * (held + whole_layer),
        gradient_bytes=_GRADIENT_BYTES * (held + whole_layer),
        optimizer_bytes=_OPTIMIZER_BYTES * sharded,
        activation_bytes=local * _activation_bytes_per_token(trainer),
        logit_bytes=_LOGIT_BYTES * local * model.vocab_size,
    )


def _activation_bytes_per_token(trainer: Trainer) -> float:
    """Stored for the backward pass of one token on one stage, all in-flight micro-batches [bytes].

    The first of ``p`` stages holds ``p`` micro-batches of its ``1/p`` of the layers, an interleaved
    schedule ``1 + (p - 1) / (p v)`` times as many (Korthikanti et al., section 4.2.3).
    """
    model, ranks = trainer.model, trainer.ranks
    every = model.num_layers * _layer_values(trainer, ranks.recompute) + _feedforward_values(
        trainer, ranks.recompute
    )
    working = 0.0
    if ranks.recompute == "full":
        working = (
            model.num_layers * _layer_values(trainer, "none") + _feedforward_values(trainer, "none")
        ) / model.num_layers
    stages, chunks = ranks.pipeline, ranks.virtual_pipeline
    interleaved = 1.0 + (stages - 1) / (stages * chunks) if chunks > 1 else 1.0
    return _ACTIVATION_BYTES * (every * interleaved + working)


def _layer_values(trainer: Trainer, recompute: str) -> float:
    """Values stored for attention, norms and residuals of one layer and token [1]."""
    hidden = float(trainer.model.hidden_size)
    if recompute == "full":
        return hidden
    norms = 4.0 if recompute == "none" else 2.0
    return norms * hidden + trainer.shape.attention_width


def _feedforward_values(trainer: Trainer, recompute: str) -> float:
    """Values stored for the feed-forward networks of all layers and one token [1]."""
    if recompute == "full":
        return 0.0
    model, experts = trainer.model, trainer.model.experts
    inner = 3.0 if recompute == "none" else 2.0
    values = inner * model.num_dense_layers * model.dense_intermediate
    if experts is not None:
        routed = experts.experts_per_token * (
            2.0 * model.hidden_size + inner * experts.intermediate
        )
        shared = inner * experts.num_shared_experts * experts.shared_intermediate
        values += model.num_expert_layers * (routed + shared)
    return values
