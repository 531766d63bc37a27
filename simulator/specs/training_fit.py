"""Fitted coefficients of training on one GPU: the numbers in the equations of ``costs.trainer``.

Fitted by ``python -m simulator.calibration.training`` on published pre-training rows; the rule that
says which rows is in ``scenarios/published/megatron/README.md``.
"""

from typing import Literal

from pydantic import Field

from simulator.base import FrozenModel

Precision = Literal["bf16", "fp8", "fp4"]
"""The same as in :mod:`simulator.specs.hardware`, which imports this module."""


class LaunchTimes(FrozenModel):
    """Time that does not depend on tokens, in one micro-batch, forward and backward [s]."""

    looped: float = Field(ge=0)
    """Experts launched one by one, shapes known to the host only (dropless, eager) [s]."""
    fused: float = Field(ge=0)
    """Experts of a layer in fused kernels under full CUDA graphs [s]."""


class ModelError(FrozenModel):
    """Standard deviation of log(measured / modelled) on models that the fit has not seen [1].

    From fitted models left out in turn, widened because they are few.
    """

    dense: float = Field(gt=0)
    """Models without experts [1]."""
    moe: float = Field(gt=0)
    """Models with experts [1]."""


class TrainingFit(FrozenModel):
    """What a well-tuned pre-training step reaches on one GPU."""

    matrix_efficiency: dict[Precision, float]
    """Share of the peak of a precision that matrix products reach; a missing precision is not
    supported for training [1]."""
    block_scaled: float = Field(gt=0, le=1)
    """What FP8 with one scale for a block (MXFP8, 128 x 128) keeps of that [1]."""
    grouped: float = Field(gt=0, le=1)
    """What grouped products of experts keep of it [1]."""
    attention_efficiency: float = Field(gt=0, le=1)
    """Share of the 16-bit peak that attention reaches at a head width of 128 or more [1]."""
    dense_passes: float = Field(ge=0)
    """Times that the activations of attention and dense layers cross the memory [1]."""
    expert_passes: float = Field(ge=0)
    """Times that the copies of tokens sent to experts cross the memory [1]."""
    scale_up_share: float = Field(gt=0, le=1)
    """Share of the NVLink rate that tensor and context collectives see, overlap included [1]."""
    exchange_share: float = Field(gt=0, le=1)
    """Share of the NVLink rate that dispatch and combine see [1]."""
    scale_out_share: float = Field(gt=0, le=1)
    """Share of the network's rate that collectives see [1]."""
    expert_launch_s: LaunchTimes
    """Fixed time of each local expert of a layer."""
    layer_launch_s: LaunchTimes
    """Fixed time of a layer with experts: router, permutation, waiting for the exchange."""
    error: ModelError
    """How far this is off for other models."""
    points: int = Field(ge=0)
    """Measured rows of this GPU that were fitted [1]."""
    source: str
    """Rows, rule, and what is derived instead of fitted."""
