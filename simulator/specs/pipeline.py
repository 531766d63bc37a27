"""How generation, training and weight sync are laid out in space and time."""

from typing import Literal, Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.specs.weight_sync import WeightSync


class Pipeline(FrozenModel):
    """Placement and synchrony of the RL loop."""

    placement: Literal["colocated", "disaggregated"] = "colocated"
    """``colocated``: the same GPUs generate and train in turn; ``disaggregated``: two pools."""
    max_policy_lag: int = Field(default=0, ge=0, le=1_000)
    """Updates that a rollout's first weights may be behind the policy it trains [steps]."""
    max_open_batches: int | None = Field(default=None, gt=0)
    """Batches that may be in generation at once; default: max_policy_lag + 1 [1]."""
    generation_gpus: int | None = Field(default=None, gt=0)
    """GPUs that generate when disaggregated; default: half of the cluster [1]."""
    data_s: float = Field(default=0.25, ge=0)
    """Drawing prompts and building the batch, per step [s]."""
    reward_s: float = Field(default=0.0, ge=0)
    """Latency of the reward after a step's last rollout ends [s]."""
    weight_sync: WeightSync = WeightSync()
    """What a hand-over of weights costs."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        if self.placement == "colocated" and self.max_policy_lag > 0:
            raise ValueError(
                f"max_policy_lag: {self.max_policy_lag} needs placement: disaggregated; colocated "
                "GPUs cannot generate while they train, so only 0 is allowed there"
            )
        if self.placement == "colocated" and self.generation_gpus is not None:
            raise ValueError(
                "generation_gpus: only a disaggregated pipeline splits its GPUs; remove the key or "
                "set placement: disaggregated"
            )
        return self

    @property
    def open_batches(self) -> int:
        """Batches that may be in generation at once [1]."""
        return self.max_open_batches or self.max_policy_lag + 1
