"""Fitted coefficients of GPU kernels: the numbers in the equations of ``simulator.costs``.

Each class is one functional form and holds the coefficients of one precision on one GPU. They are
coefficients of a fit and not physical efficiencies: a memory efficiency can exceed 1 where a cache
helps. What each of them multiplies is told by the equation of the function that uses it.
"""

from pydantic import Field

from simulator.base import FrozenModel

NonNegative = Field(ge=0)
Positive = Field(gt=0)


class Provenance(FrozenModel):
    """Where a fitted entry comes from and how well it holds out."""

    source: str
    """Data set that was fitted, with its version."""
    table: str
    """Table inside the source."""
    kernel: str
    """Kernel or back end that was measured."""
    points: int = Field(ge=0)
    """Measured rows of this class [1]."""
    heldout_points: int = Field(ge=0)
    """Rows of the shapes kept out of the fit [1]."""
    heldout_median_error: float = NonNegative
    """Median absolute relative error on the held-out shapes [1]."""
    heldout_p90_error: float = NonNegative
    """90th percentile of the same [1]."""
    fit_range: dict[str, tuple[float, float]] = {}
    """Smallest and largest value of each regressor in the rows, in its own unit."""
    note: str = ""
    """What a reader must know: traps avoided, scaling applied."""


class GemmFit(FrozenModel):
    """Dense matrix product; see :func:`simulator.costs.operators.gemm_s`."""

    launch_s: float = NonNegative
    """Time of an empty kernel [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the peak rate [1]."""
    memory_efficiency: float = Positive
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins compute and memory time [1]."""
    idle_area: float = NonNegative
    """Output elements that cost time although nobody asked: idle SMs, last wave [1]."""
    prologue_depth: float = NonNegative
    """Inner dimension that the pipeline's start is worth [1]."""
    fixed_bytes: float = NonNegative
    """Traffic of every call beside its operands [bytes]."""
    padded_share: float = Field(ge=0, le=1)
    """Share of the padding of rows to 128 that is paid for [1]."""
    quantise_passes: float = NonNegative
    """Passes over 16-bit inputs to quantise them [1]."""
    provenance: Provenance


class DecodeAttentionFit(FrozenModel):
    """Attention of new tokens over a cache; see :mod:`simulator.costs.attention`."""

    launch_s: float = NonNegative
    """Time of an empty kernel [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the 16-bit peak rate [1]."""
    memory_efficiency: float = Positive
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins the parts [1]."""
    fixed_bytes: float = NonNegative
    """Traffic of every call beside its operands [bytes]."""
    few_groups: float = NonNegative
    """Extra traffic, in caches of one KV head, that too few parallel groups cost [1]."""
    group_s: float = NonNegative
    """Time of one sequence and KV head, however short [s]."""
    provenance: Provenance


class PrefillAttentionFit(FrozenModel):
    """Attention of whole prompts; see :mod:`simulator.costs.attention`."""

    launch_s: float = NonNegative
    """Time of an empty kernel [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the 16-bit peak rate [1]."""
    memory_efficiency: float = Positive
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins the parts [1]."""
    idle_rows: float = NonNegative
    """Query rows that cost time although nobody asked [1]."""
    prologue_tokens: float = NonNegative
    """Context that the pipeline's start is worth [tokens]."""
    head_s: float = NonNegative
    """Time of one sequence and head, however short [s]."""
    quantise_passes: float = NonNegative
    """Passes over queries to quantise them [1]."""
    provenance: Provenance


class MoeFit(FrozenModel):
    """Grouped matrix products of experts; see :func:`simulator.costs.experts.moe_s`."""

    launch_s: float = NonNegative
    """Time of an empty layer [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the peak rate [1]."""
    memory_efficiency: float = Positive
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins the parts [1]."""
    imbalance: float = NonNegative
    """Rows that the most loaded rank has beyond its fair share, per token of the group [1]."""
    spread: float = Positive
    """Exponent of rows per expert in the share of experts that are touched [1]."""
    tile_rows: float = NonNegative
    """Rows that every touched expert is padded by [1]."""
    activation_traffic: float = NonNegative
    """Coefficient of the activations' bytes [1]."""
    expert_s: float = NonNegative
    """Time of one touched expert, however few its rows [s]."""
    provenance: Provenance


class CollectiveFit(FrozenModel):
    """A collective among a fixed number of ranks; see :mod:`simulator.costs.collectives`."""

    ranks: int = Field(gt=1)
    """Ranks that took part [1]."""
    launch_s: float = NonNegative
    """Time of an empty message [s]."""
    bytes_per_s: float = Positive
    """Rate of long messages [bytes/s]."""
    root_s: float = NonNegative
    """Coefficient of the square root of the bytes: how late the full rate is reached [s]."""
    provenance: Provenance


class ExchangeFit(FrozenModel):
    """Dispatch and combine of tokens among expert ranks; see ``collectives``."""

    launch_s: float = NonNegative
    """Time of both directions without tokens, among two ranks [s]."""
    rank_s: float = NonNegative
    """What doubling the ranks adds [s]."""
    bytes_per_s: float = Positive
    """Rate at which one rank sends and receives [bytes/s]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins latency and transfer [1]."""
    provenance: Provenance
