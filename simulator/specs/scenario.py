"""One question as a document: which model, on which GPUs, doing what, compared with what."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from simulator.base import FrozenModel
from simulator.specs.engine import Engine
from simulator.specs.pipeline import Pipeline
from simulator.specs.speculation import Speculation
from simulator.specs.training import Training
from simulator.specs.workload import Workload

OverrideValue = bool | int | float | str | None | list[float]


_SHARED_WITH_BASELINE = ("steps", "warmup_steps", "seeds", "seed")


class Cluster(FrozenModel):
    """The GPUs of the run."""

    gpus: int = Field(gt=0, le=1_000_000)
    """GPUs of the whole run [1]."""
    hardware: str = Field(min_length=1)
    """Hardware profile: a name under hardware_profiles/ or a path."""


class Scenario(FrozenModel):
    """Everything that a projection depends on, besides the files it names."""

    schema_version: Literal[1] = 1
    """Version of this document's schema [1]."""
    name: str = Field(min_length=1, max_length=200)
    """Short name, shown in results."""
    description: str = ""
    """What is asked, and what is assumed."""
    model: str = Field(min_length=1)
    """Policy model: a name under workloads/models/ or a path to a Hugging Face config.json."""
    cluster: Cluster
    """The GPUs of the run."""
    workload: Workload
    """What one step generates."""
    engine: Engine = Engine()
    """How the inference engine is set up."""
    speculation: Speculation = Speculation()
    """Speculative decoding, if any."""
    training: Training = Training()
    """How the policy is updated."""
    pipeline: Pipeline = Pipeline()
    """Placement and synchrony of the RL loop."""
    steps: int = Field(default=10, gt=0, le=1_000_000)
    """RL steps that are measured [steps]."""
    warmup_steps: int | None = Field(default=None, ge=0, le=1_000_000)
    """Steps left out of averages; default: none, or twice the open batches when lagged [steps]."""
    seeds: int = Field(default=3, gt=0, le=10_000)
    """Independent repetitions [1]."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """First seed; everything random follows from it [1]."""
    baseline: dict[str, OverrideValue] | None = None
    """Overrides (dotted path: value) that turn this scenario into what it is compared with."""

    @property
    def effective_warmup_steps(self) -> int:
        """Steps left out of averages: as asked, else until an asynchronous loop is full [steps]."""
        if self.warmup_steps is not None:
            return self.warmup_steps
        lag = self.pipeline.max_policy_lag
        return 2 * (lag + 1) if lag else 0

    @field_validator("baseline")
    @classmethod
    def _a_baseline_changes_something(
        cls, value: dict[str, OverrideValue] | None
    ) -> dict[str, OverrideValue] | None:
        if value is not None and not value:
            raise ValueError("a baseline names at least one override; remove the key otherwise")
        for path in value or ():
            if path in _SHARED_WITH_BASELINE:
                raise ValueError(f"{path} cannot differ: a baseline runs over the same draws")
        return value

    @model_validator(mode="after")
    def _generation_leaves_gpus_to_train(self) -> Self:
        generation = self.pipeline.generation_gpus
        if generation is not None and generation >= self.cluster.gpus:
            raise ValueError(
                f"pipeline.generation_gpus: {generation} of {self.cluster.gpus} GPUs leaves none "
                f"to train; allowed are 1 to {self.cluster.gpus - 1}"
            )
        if self.pipeline.placement == "disaggregated" and self.cluster.gpus < 2:
            raise ValueError("cluster.gpus: a disaggregated pipeline needs at least 2 GPUs")
        return self

    @property
    def generation_gpus(self) -> int:
        """GPUs that generate [1]."""
        if self.pipeline.placement == "colocated":
            return self.cluster.gpus
        return self.pipeline.generation_gpus or self.cluster.gpus // 2

    @property
    def training_gpus(self) -> int:
        """GPUs that train [1]."""
        if self.pipeline.placement == "colocated":
            return self.cluster.gpus
        return self.cluster.gpus - self.generation_gpus
