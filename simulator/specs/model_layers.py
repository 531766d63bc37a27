"""What one layer of a transformer is made of: kinds of attention, and experts.

Each part knows its widths, and what they imply for one layer: weights, and elements written to
the cache. How many layers there are, and of which kind, is told in :mod:`simulator.specs.model`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel

Size = Annotated[int, Field(gt=0, le=10**9)]
"""A width or a count that a model must have."""

Count = Annotated[int, Field(ge=0, le=10**9)]
"""A width or a count that may be absent."""

Layers = Annotated[int, Field(ge=0, le=10_000)]
"""A number of layers."""


class GroupedQueryAttention(FrozenModel):
    """Attention whose query heads share key and value heads; one each is multi-head attention."""

    kind: Literal["grouped_query"] = "grouped_query"
    """Tag of this kind of attention."""
    num_heads: Size
    """Query heads [1]."""
    num_kv_heads: Size
    """Key and value heads; divides the query heads [1]."""
    head_dim: Size
    """Width of one head, which need not be hidden size / heads [1]."""
    has_bias: bool = False
    """Whether the query, key and value projections add a bias."""
    has_qk_norm: bool = False
    """Whether queries and keys are normalised."""
    norm_spans_heads: bool = False
    """Whether that norm is over all heads at once, so that tensor ranks must exchange it."""
    window_tokens: Size | None = None
    """Tokens that a windowed layer attends to and caches; null: no layer is windowed [tokens]."""
    windowed_layers: Layers = 0
    """Layers that attend to the window only; the others attend to everything [1]."""

    @model_validator(mode="after")
    def _heads_and_window_are_consistent(self) -> Self:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_kv_heads {self.num_kv_heads} must divide num_heads {self.num_heads}"
            )
        if (self.window_tokens is None) != (self.windowed_layers == 0):
            raise ValueError(
                f"window_tokens {self.window_tokens} and windowed_layers {self.windowed_layers} "
                "must be given together or not at all"
            )
        return self

    def projection_parameters(self, hidden_size: int) -> int:
        """Weights of the query, key, value and output matrices of one layer [1]."""
        return 2 * hidden_size * self.head_dim * (self.num_heads + self.num_kv_heads)

    @property
    def vector_parameters(self) -> int:
        """Biases and head norms of one layer [1]."""
        bias = (self.num_heads + 2 * self.num_kv_heads) * self.head_dim if self.has_bias else 0
        if not self.has_qk_norm:
            return bias
        heads = self.num_heads + self.num_kv_heads if self.norm_spans_heads else 2
        return bias + heads * self.head_dim

    @property
    def kv_elements_per_token(self) -> int:
        """Elements that one token adds to the cache of one layer [1]."""
        return 2 * self.num_kv_heads * self.head_dim


class LatentAttention(FrozenModel):
    """Multi-head latent attention: all heads read one compressed vector and one rotary key.

    DeepSeek-V2, arXiv 2405.04434, section 2.1.
    """

    kind: Literal["latent"] = "latent"
    """Tag of this kind of attention."""
    num_heads: Size
    """Query heads [1]."""
    q_lora_rank: Size | None
    """Width that queries are compressed to; null: one full matrix [1]."""
    kv_lora_rank: Size
    """Width that keys and values are compressed to, and cached at [1]."""
    qk_nope_head_dim: Size
    """Width of a head's query and key without position [1]."""
    qk_rope_head_dim: Size
    """Width of a head's rotary query, and of the rotary key that all heads share [1]."""
    v_head_dim: Size
    """Width of a head's value [1]."""

    def projection_parameters(self, hidden_size: int) -> int:
        """Weights of all down, up and output matrices of one layer [1]."""
        heads = self.num_heads
        query_width = heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        if self.q_lora_rank is None:
            query = hidden_size * query_width
        else:
            query = self.q_lora_rank * (hidden_size + query_width)
        down = hidden_size * (self.kv_lora_rank + self.qk_rope_head_dim)
        up = self.kv_lora_rank * heads * (self.qk_nope_head_dim + self.v_head_dim)
        return query + down + up + heads * self.v_head_dim * hidden_size

    @property
    def vector_parameters(self) -> int:
        """Norms of the compressed query and of the latent of one layer [1]."""
        return (self.q_lora_rank or 0) + self.kv_lora_rank

    @property
    def kv_elements_per_token(self) -> int:
        """Elements that one token adds to the cache of one layer [1]."""
        return self.kv_lora_rank + self.qk_rope_head_dim


Attention = Annotated[GroupedQueryAttention | LatentAttention, Field(discriminator="kind")]


class Experts(FrozenModel):
    """Feed-forward networks of one layer of which a token visits a few."""

    num_experts: Size
    """Routed experts [1]."""
    experts_per_token: Size
    """Routed experts that a token visits [1]."""
    intermediate: Size
    """Width of one routed expert [1]."""
    num_shared_experts: Count = 0
    """Experts that every token visits [1]."""
    shared_intermediate: Count = 0
    """Width of one shared expert [1]."""

    @model_validator(mode="after")
    def _counts_are_consistent(self) -> Self:
        if self.experts_per_token > self.num_experts:
            raise ValueError(
                f"experts_per_token {self.experts_per_token} exceeds num_experts {self.num_experts}"
            )
        if (self.num_shared_experts == 0) != (self.shared_intermediate == 0):
            raise ValueError("num_shared_experts and shared_intermediate must both be 0 or neither")
        return self
