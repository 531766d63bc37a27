"""A GPU, its links and the fitted cost of its kernels and of the engine's software.

One YAML under ``hardware_profiles/`` is one :class:`HardwareProfile`. Datasheet rates stand
beside fitted coefficients; every fitted entry carries its own :class:`Provenance`, so that a
projection can say what it rests on.
"""

from typing import Literal

from pydantic import Field

from simulator.base import FrozenModel

Precision = Literal["bf16", "fp8", "fp4"]
"""What a user asks for; a profile maps it to the kernels that engines run."""

KernelPrecision = Literal["bf16", "fp8", "fp8_block", "nvfp4"]
"""What a kernel table measures: ``fp8`` scales per tensor, ``fp8_block`` per 128 x 128 block."""

PositiveFloat = Field(gt=0)


class Provenance(FrozenModel):
    """Where a fitted entry comes from and how well it holds out."""

    source: str
    """Data set or paper that was fitted, with its version."""
    table: str
    """Table or figure inside the source."""
    backend: str
    """Engine whose kernels were measured."""
    points: int = Field(ge=0)
    """Measured rows available [1]."""
    heldout_points: int = Field(ge=0)
    """Rows of the shapes kept out of the fit [1]."""
    heldout_median_error: float = Field(ge=0)
    """Median absolute relative error on the held-out shapes [1]."""
    heldout_p90_error: float = Field(ge=0)
    """90th percentile of the same [1]."""
    fit_range: dict[str, tuple[float, float]] = {}
    """Smallest and largest value of each regressor that was fitted, in its own unit."""
    note: str = ""
    """Anything a reader must know: traps avoided, scaling applied."""


class Device(FrozenModel):
    """Datasheet rates of one GPU (dense, no sparsity)."""

    peak_flops_per_s: dict[Precision, float]
    """Peak dense tensor throughput by precision [FLOP/s]."""
    hbm_bytes: float = PositiveFloat
    """Memory of one GPU [bytes]."""
    hbm_bytes_per_s: float = PositiveFloat
    """Memory bandwidth of one GPU [bytes/s]."""
    source: str
    """Datasheet or file the rates come from."""


class Network(FrozenModel):
    """Links of one GPU, one direction each."""

    scale_up_gpus: int = Field(gt=0)
    """GPUs in one NVLink domain [1]."""
    node_gpus: int = Field(gt=0)
    """GPUs in one host [1]."""
    scale_up_bytes_per_s: float = PositiveFloat
    """NVLink rate of one GPU [bytes/s]."""
    scale_out_bytes_per_s: float = PositiveFloat
    """Network rate of one GPU beyond the NVLink domain [bytes/s]."""
    scale_out_latency_s: float = Field(ge=0)
    """Latency that a collective adds when it leaves the NVLink domain [s]."""
    host_bytes_per_s: float = PositiveFloat
    """Rate between GPU and host memory [bytes/s]."""
    source: str
    """Datasheet or file the rates come from."""
