"""How one engine instance is spread over GPUs, once every ``auto`` has been decided."""

from typing import Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel


class EngineParallelism(FrozenModel):
    """Ranks of one generation instance.

    Attention and dense layers are split ``tensor`` ways inside each of ``data`` attention
    replicas; experts are spread over all ``tensor * data`` GPUs of a pipeline stage:
    ``expert`` ways by whole experts, and what is left over inside each expert.
    """

    tensor: int = Field(gt=0)
    """Ways that attention and dense layers are split [ranks]."""
    data: int = Field(default=1, gt=0)
    """Attention replicas that share one set of experts [ranks]."""
    pipeline: int = Field(default=1, gt=0)
    """Pipeline stages [ranks]."""
    expert: int = Field(default=1, gt=0)
    """Ways that the experts are divided among GPUs [ranks]."""
    drafter_tensor: int = Field(default=1, gt=0)
    """Ways that the drafter is split inside one attention replica [ranks]."""

    @model_validator(mode="after")
    def _ranks_divide(self) -> Self:
        if (self.tensor * self.data) % self.expert:
            raise ValueError(
                f"expert_parallel {self.expert} must divide tensor_parallel x data_parallel "
                f"= {self.tensor * self.data}"
            )
        if self.tensor % self.drafter_tensor:
            raise ValueError(
                f"drafter tensor_parallel {self.drafter_tensor} must divide the target's "
                f"tensor_parallel {self.tensor}"
            )
        return self

    @property
    def gpus(self) -> int:
        """GPUs of one instance [1]."""
        return self.tensor * self.data * self.pipeline

    @property
    def expert_tensor(self) -> int:
        """Ways that each expert's matrices are split [ranks]."""
        return self.tensor * self.data // self.expert

    def describe(self) -> str:
        """Short text, such as ``TP4 x DP16, EP64``."""
        parts = [f"TP{self.tensor}"]
        if self.data > 1:
            parts.append(f"DP{self.data}")
        if self.pipeline > 1:
            parts.append(f"PP{self.pipeline}")
        text = " x ".join(parts)
        return f"{text}, EP{self.expert}" if self.expert > 1 else text
