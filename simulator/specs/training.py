"""How the policy is updated: passes over the rollouts, precision, sharding, efficiency."""

from typing import Literal, Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.specs.training_fit import Precision

Ranks = int | Literal["auto"]
"""Ranks of one kind, or whatever is fastest among what fits."""

Recompute = Literal["none", "selective", "full"]
"""What the backward pass computes again: nothing; attention and activation functions; layers."""


class TrainingParallelism(FrozenModel):
    """How the trainer spreads a model over its GPUs; ``auto`` is decided together.

    ``auto`` takes what trains an even batch of the scenario fastest among what fits into memory:
    tensor ranks inside a host that divide the attention heads, at most 16 pipeline stages, context
    ranks until more of them do not pay, expert ranks that divide the experts, each a power of two.
    Data-parallel ranks are what is left of the GPUs.
    """

    tensor: Ranks = Field(default="auto")
    """Ways that attention and dense layers are split [ranks]."""
    context: Ranks = Field(default="auto")
    """Ways that a sequence is split [ranks]."""
    pipeline: Ranks = Field(default="auto")
    """Pipeline stages [ranks]."""
    virtual_pipeline: int = Field(default=1, gt=0, le=1_000)
    """Model chunks of one stage: an interleaved schedule [1]."""
    expert: Ranks = Field(default="auto")
    """Ways that the experts are divided, over tensor, context and data ranks [ranks]."""
    data: Ranks = Field(default="auto")
    """Copies of the model that share a batch; must agree with the GPUs [ranks]."""
    sharding: Literal["auto", "optimizer", "full"] = "auto"
    """What data-parallel ranks share: the optimizer (ZeRO-1, Megatron), or weights and gradients
    too (ZeRO-3, FSDP). ``auto``: the first, else the second if only that fits."""

    @model_validator(mode="after")
    def _ranks_are_positive(self) -> Self:
        for name in ("tensor", "context", "pipeline", "expert", "data"):
            value = getattr(self, name)
            if value != "auto" and not 0 < value <= 1_000_000:
                raise ValueError(f"{name}: {value} is not allowed; 1 to 1000000 ranks, or auto")
        if self.virtual_pipeline > 1 and self.pipeline == 1:
            raise ValueError(
                f"virtual_pipeline: {self.virtual_pipeline} needs pipeline above 1; one stage has "
                "nothing to interleave"
            )
        return self


class Training(FrozenModel):
    """The trainer. What is left out comes from the hardware profile."""

    precision: Precision = "bf16"
    """Precision of the matrix products in training and log-prob passes."""
    fp8_scaling: Literal["tensor", "block"] = "tensor"
    """How FP8 is scaled: one factor a tensor, or one a block (MXFP8, 128 x 128)."""
    parallelism: TrainingParallelism = TrainingParallelism()
    """How the model is spread over the trainer's GPUs."""
    micro_batch_tokens: int = Field(default=16_384, gt=0, le=100_000_000)
    """Tokens that one micro-batch of a data-parallel rank holds, at least its longest sequence;
    verl's default [tokens]."""
    packing: Literal["packed", "padded"] = "packed"
    """``packed``: sequences are laid end to end; ``padded``: each is as long as the longest of its
    mini-batch."""
    balance: Literal["work", "none"] = "work"
    """``work``: sequences are dealt to data-parallel ranks by their work, longest first, as verl
    and NeMo RL do; ``none``: in the order of the batch."""
    expert_kernels: Literal["looped", "fused"] = "looped"
    """How experts are launched: one by one, as trainers with varying shapes do, or fused under full
    CUDA graphs (Megatron-Bridge from 26.06 on Blackwell)."""
    trains_mtp: bool = False
    """Whether multi-token-prediction layers are trained along."""
    mfu: float | None = Field(default=None, gt=0, le=1)
    """Model FLOP utilisation of a well-tuned step, which replaces everything fitted but the
    balance of work; default: composed from the profile's coefficients [1]."""
    efficiency: float = Field(default=0.6, gt=0, le=1)
    """What an RL trainer keeps of well-tuned pre-training: offload, host work, gaps [1]."""
    logprob_passes: int = Field(default=1, ge=0, le=4)
    """Forward passes for log-probabilities: 1 for the old policy, 2 with a reference [1]."""
    recompute: Recompute | Literal["auto"] = "auto"
    """What the backward pass computes again to save memory; ``auto``: as little as fits."""
    optimizer_steps: int = Field(default=1, gt=0, le=100_000)
    """Optimizer steps (mini-batches) in one RL step [1]."""
    optimizer_step_s: float = Field(default=0.1, ge=0)
    """Fixed time of one optimizer step beside its traffic: launch, norms, barriers [s]."""
