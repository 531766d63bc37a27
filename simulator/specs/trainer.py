"""How a trainer is spread over GPUs, once every ``auto`` has been decided."""

from typing import Literal, Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.specs.training import Recompute


class TrainerParallelism(FrozenModel):
    """Ranks of one trainer.

    A model copy takes ``tensor * context * pipeline`` GPUs. Experts are divided ``expert`` ways
    over the tensor, context and data ranks of a stage, whole experts each.
    """

    tensor: int = Field(default=1, gt=0)
    """Ways that attention and dense layers are split, sequence-parallel between [ranks]."""
    context: int = Field(default=1, gt=0)
    """Ways that a sequence is split [ranks]."""
    pipeline: int = Field(default=1, gt=0)
    """Pipeline stages [ranks]."""
    virtual_pipeline: int = Field(default=1, gt=0)
    """Model chunks of one stage [1]."""
    expert: int = Field(default=1, gt=0)
    """Ways that the experts are divided [ranks]."""
    data: int = Field(default=1, gt=0)
    """Copies of the model [ranks]."""
    sharding: Literal["optimizer", "full"] = "optimizer"
    """What data-parallel ranks share: optimizer state, or weights and gradients too."""
    recompute: Recompute = "none"
    """What the backward pass computes again."""

    @model_validator(mode="after")
    def _experts_divide_a_stage(self) -> Self:
        if self.stage_gpus % self.expert:
            raise ValueError(
                f"expert {self.expert} must divide tensor x context x data = {self.stage_gpus}"
            )
        return self

    @property
    def stage_gpus(self) -> int:
        """GPUs that hold one pipeline stage [1]."""
        return self.tensor * self.context * self.data

    @property
    def gpus(self) -> int:
        """GPUs of the trainer [1]."""
        return self.stage_gpus * self.pipeline

    @property
    def expert_data(self) -> int:
        """Copies of each expert [ranks]."""
        return self.stage_gpus // self.expert

    def describe(self) -> str:
        """Short text, such as ``TP2 x PP8 x DP16, EP32, full recomputation``."""
        named = (
            ("TP", self.tensor),
            ("CP", self.context),
            ("PP", self.pipeline),
            ("DP", self.data),
        )
        text = " x ".join(f"{name}{ranks}" for name, ranks in named if ranks > 1) or "DP1"
        if self.expert > 1:
            text += f", EP{self.expert}"
        if self.sharding == "full":
            text += ", weights sharded"
        return text if self.recompute == "none" else f"{text}, {self.recompute} recomputation"
