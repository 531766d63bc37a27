"""Fitted coefficients of GPU kernels: the numbers in the equations of ``simulator.costs``.

Each class is one functional form and holds the coefficients of one precision on one GPU. They are
coefficients of a fit and not physical efficiencies: a memory efficiency can exceed 1 where a cache
helps. What each of them multiplies is told by the equation of the function that uses it.
"""

import math
from typing import Literal, Self

from pydantic import Field

from simulator.base import FrozenModel

NonNegative = Field(ge=0)
Positive = Field(gt=0)


TileMenu = Literal["free", "fine", "by_rows"]
"""Output tiles that a library chooses from; see :data:`simulator.costs.operators.TILES`."""


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
    tiles: TileMenu
    """Menu of tiles, the one of three that fits best."""
    prologue_depth: float = NonNegative
    """Inner dimension that the start and the end of a tile are worth [1]."""
    depth_s: float = NonNegative
    """Time that a unit of depth takes beside its operations [s]."""
    split_s: float | None = Field(default=None, ge=0)
    """Time that splitting the depth among SMs adds; None for kernels that never do [s]."""
    wave_share: float = Field(ge=0, le=1)
    """Share of the idle part of the last wave that is paid for [1]."""
    padded_share: float = Field(ge=0, le=1)
    """Share of the padding of rows to whole tiles that is paid for [1]."""
    quantise_passes: float = NonNegative
    """Passes over 16-bit inputs to quantise them [1]."""
    provenance: Provenance


class DecodeAttentionFit(FrozenModel):
    """Attention of new tokens over a cache; see :mod:`simulator.costs.attention`."""

    head_dim: float = Positive
    """Width of a head whose measurements were fitted; of a latent with its rotary part [1]."""
    launch_s: float = NonNegative
    """Time of an empty kernel [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the peak rate of the cache's precision [1]."""
    memory_efficiency: float = Positive
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins the parts [1]."""
    fixed_bytes: float = NonNegative
    """Traffic of every call beside its operands [bytes]."""
    query_traffic: float = NonNegative
    """Coefficient of the bytes of queries and outputs [1]."""
    root_s: float = NonNegative
    """Coefficient of the square root of the context: splitting a cache, joining its parts [s]."""
    token_s: float = NonNegative
    """Time of a token of context where one block walks a whole cache; 0 if caches are split [s]."""
    group_s: float = NonNegative
    """Time of one sequence and KV head, however short [s]."""
    window_s: float = NonNegative
    """What a window adds to a context longer than it [s]."""
    window_tokens: float = NonNegative
    """Tokens that are read beside those of the window [tokens]."""
    provenance: Provenance
    other_widths: tuple["DecodeAttentionFit", ...] = ()
    """Fits of heads of other widths."""

    def of_width(self, head_dim: float) -> "DecodeAttentionFit":
        """The fit of the heads whose width is nearest, by ratio."""
        return min((self, *self.other_widths), key=lambda fit: _distance(fit.head_dim, head_dim))

    def ideal(self) -> Self:
        """The same kernel launched in no time."""
        others = tuple(fit.ideal() for fit in self.other_widths)
        return self.model_copy(update={"launch_s": 0.0, "window_s": 0.0, "other_widths": others})


class PrefillAttentionFit(FrozenModel):
    """Attention of whole prompts; see :mod:`simulator.costs.attention`."""

    head_dim: float = Positive
    """Width of a head whose measurements were fitted; of a latent's keys [1]."""
    launch_s: float = NonNegative
    """Time of an empty kernel [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the peak rate of the cache's precision [1]."""
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
    write_thread_s: float = NonNegative
    """Time of writing a token to the cache, for each thread that it occupies [s]."""
    write_element_s: float = NonNegative
    """The same, for each element of its keys [s]."""
    window_tokens: float = NonNegative
    """Tokens that are attended to beside those of a window [tokens]."""
    provenance: Provenance
    other_widths: tuple["PrefillAttentionFit", ...] = ()
    """Fits of heads of other widths."""

    def of_width(self, head_dim: float) -> "PrefillAttentionFit":
        """The fit of the heads whose width is nearest, by ratio."""
        return min((self, *self.other_widths), key=lambda fit: _distance(fit.head_dim, head_dim))

    def ideal(self) -> Self:
        """The same kernel launched in no time."""
        others = tuple(fit.ideal() for fit in self.other_widths)
        return self.model_copy(update={"launch_s": 0.0, "other_widths": others})


def _distance(width: float, other: float) -> float:
    return abs(math.log(width / other))


class MoeFit(FrozenModel):
    """Grouped matrix products of experts; see :func:`simulator.costs.experts.moe_s`."""

    launch_s: float = NonNegative
    """Time of an empty layer [s]."""
    compute_efficiency: float = Positive
    """Coefficient of the peak rate [1]."""
    memory_efficiency: float = Field(gt=0, le=1)
    """Coefficient of the memory bandwidth [1]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins the parts [1]."""
    imbalance: float = NonNegative
    """Spread of the experts' loads relative to their mean, as measured; 0 is even [1]."""
    spread: float = Positive
    """Order of the soft minimum of rows and experts that counts touched experts [1]."""
    tile_rows: float = NonNegative
    """Rows that every touched expert is padded by [1]."""
    prologue_width: float = NonNegative
    """Intermediate width that the start and the end of a tile are worth [1]."""
    activation_traffic: float = NonNegative
    """Coefficient of the bytes of this rank's activations [1]."""
    group_traffic: float = NonNegative
    """Coefficient of the bytes of the activations of all tokens, wherever their experts are [1]."""
    depth_s: float = NonNegative
    """Time that a unit of hidden or intermediate width takes, however few the rows [s]."""
    sorting_s: float = NonNegative
    """Time that sorting many tokens by expert adds [s]."""
    expert_s: float = NonNegative
    """Time of one expert that the rank holds, touched or not [s]."""
    provenance: Provenance
    divided: "MoeFit | None" = None
    """The kernel that engines run instead where experts are divided among ranks."""

    def ideal(self) -> Self:
        """The same kernel launched in no time, with experts loaded evenly."""
        return self.model_copy(
            update={
                "launch_s": 0.0,
                "sorting_s": 0.0,
                "imbalance": 0.0,
                "divided": self.divided.ideal() if self.divided else None,
            }
        )


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
    """Rate at which one rank sends and receives long messages [bytes/s]."""
    root_s: float = NonNegative
    """Coefficient of the square root of the bytes: how late the full rate is reached [s]."""
    norm: float = Field(ge=1)
    """Order of the norm that joins latency and transfer [1]."""
    provenance: Provenance
