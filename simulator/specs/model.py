"""A decoder-only transformer as a shape: how many weights it has and how much cache it writes.

Everything that pricing needs to know of a model is its widths: attention (grouped queries or a
compressed latent), feed-forward layers (dense or experts), vocabulary. Counts follow from them.
Left out are vision towers, the training recipe, and layers that keep a state instead of a cache.

Counts are plain properties and never cached, because a drafter is a copy of its target with
other widths, and a cached count would travel with the copy.
"""

from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.specs.hardware import Precision
from simulator.specs.model_layers import (
    Attention,
    Count,
    Experts,
    GroupedQueryAttention,
    LatentAttention,
    Layers,
    Size,
)

__all__ = ["Experts", "GroupedQueryAttention", "LatentAttention", "ModelSpec"]

FloatArray = npt.NDArray[np.float64]

WEIGHT_BYTES: dict[Precision, float] = {
    "bf16": 2.0,
    "fp8": 1.0 + 4.0 / 128**2,
    "fp4": 0.5625,
    "mxfp4": 2.0,
}
"""Bytes of a quantised weight outside the routed experts, with its scales [bytes].

FP8 adds one 32-bit scale for 128 x 128 weights, FP4 one 8-bit scale for 16 (NVFP4).
"""

EXPERT_WEIGHT_BYTES: dict[Precision, float] = {**WEIGHT_BYTES, "mxfp4": 0.53125}
"""The same for a weight of a routed expert; MXFP4 has one 8-bit scale for 32 [bytes]."""

KV_BYTES: dict[Precision, float] = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625}
"""Bytes of one cached element [bytes]."""

_UNQUANTISED_BYTES = 2.0
"""Embeddings, head, router, norms and biases stay in 16 bits at every precision [bytes]."""


class ModelSpec(FrozenModel):
    """Shape of a model. MTP layers are not part of any count except ``mtp_parameters``."""

    name: str = Field(min_length=1, max_length=200)
    """Short name, shown in results."""
    num_layers: Annotated[Layers, Field(gt=0)]
    """Decoder layers, without MTP layers [1]."""
    hidden_size: Size
    """Width of the residual stream [1]."""
    vocab_size: Size
    """Rows of the embedding and of the output head [1]."""
    ties_embeddings: bool = False
    """Whether the output head is the embedding matrix: stored once, multiplied all the same."""
    attention: Attention
    """Attention of every layer."""
    dense_intermediate: Count = 0
    """Width of the feed-forward network of layers without experts [1]."""
    num_dense_layers: Layers
    """Layers with one dense feed-forward network [1]."""
    experts: Experts | None = None
    """Experts of the other layers; null if there are none."""
    num_expert_layers: Layers = 0
    """Layers with experts [1]."""
    num_mtp_layers: Layers = 0
    """Multi-token-prediction layers that the checkpoint carries [1]."""
    quantises_attention: bool = True
    """Whether quantised checkpoints also quantise the projections of attention."""
    native_precision: Precision = "bf16"
    """Precision that the matrices are published in; 4-bit integers count as ``fp4``."""
    max_position_tokens: Size
    """Longest context that the model was made for [tokens]."""

    @model_validator(mode="after")
    def _layers_are_all_described(self) -> Self:
        if self.num_dense_layers + self.num_expert_layers != self.num_layers:
            raise ValueError(
                f"num_dense_layers {self.num_dense_layers} + num_expert_layers "
                f"{self.num_expert_layers} must be num_layers {self.num_layers}"
            )
        if self.num_dense_layers and not self.dense_intermediate:
            raise ValueError("dense_intermediate must be > 0, because there are dense layers")
        if (self.num_expert_layers == 0) != (self.experts is None):
            raise ValueError("experts must be given exactly when num_expert_layers > 0")
        attention = self.attention
        if attention.kind == "grouped_query" and attention.windowed_layers > self.num_layers:
            raise ValueError(
                f"windowed_layers {attention.windowed_layers} exceeds num_layers {self.num_layers}"
            )
        return self

    @property
    def is_moe(self) -> bool:
        """Whether any layer has experts."""
        return self.num_expert_layers > 0

    @property
    def embedding_parameters(self) -> int:
        """The embedding matrix [1]."""
        return self.vocab_size * self.hidden_size

    @property
    def head_parameters(self) -> int:
        """The output head as far as it is stored: 0 if it is the embedding matrix [1]."""
        return 0 if self.ties_embeddings else self.embedding_parameters

    @property
    def attention_parameters_per_layer(self) -> int:
        """Projections, biases and head norms of one layer [1]."""
        attention = self.attention
        return attention.projection_parameters(self.hidden_size) + attention.vector_parameters

    @property
    def dense_feedforward_parameters_per_layer(self) -> int:
        """Gate, up and down matrices of one layer without experts [1]."""
        return 3 * self.hidden_size * self.dense_intermediate

    @property
    def parameters_per_expert(self) -> int:
        """Gate, up and down matrices of one routed expert [1]."""
        return 3 * self.hidden_size * self.experts.intermediate if self.experts else 0

    @property
    def shared_expert_parameters_per_layer(self) -> int:
        """All shared experts of one layer with experts [1]."""
        if self.experts is None:
            return 0
        width = self.experts.num_shared_experts * self.experts.shared_intermediate
        return 3 * self.hidden_size * width

    @property
    def router_parameters_per_layer(self) -> int:
        """The matrix that scores the routed experts [1]."""
        return self.hidden_size * self.experts.num_experts if self.experts else 0

    @property
    def expert_parameters(self) -> int:
        """All routed experts of all layers [1]."""
        experts = self.experts.num_experts if self.experts else 0
        return self.num_expert_layers * experts * self.parameters_per_expert

    @property
    def active_expert_parameters(self) -> int:
        """Routed experts that one token visits, over all layers [1]."""
        experts = self.experts.experts_per_token if self.experts else 0
        return self.num_expert_layers * experts * self.parameters_per_expert

    @property
    def parameters(self) -> int:
        """Every weight of the model, without MTP layers [1]."""
        quantised = self._quantised_parameters + self.expert_parameters
        return quantised + self._unquantised_parameters

    @property
    def active_parameters(self) -> int:
        """Weights that one token uses: everything but the experts that it does not visit [1].

        The embedding matrix counts whole although a token reads one row, as DeepSeek, Moonshot
        and Qwen count. OpenAI leaves it out: ``active_parameters - embedding_parameters``.
        """
        return self.parameters - self.expert_parameters + self.active_expert_parameters

    @property
    def active_matmul_parameters(self) -> int:
        """Weights that a token is multiplied with in the layers, without the output head [1]."""
        router = self.num_expert_layers * self.router_parameters_per_layer
        matrices = self._attention_parameters + self._feedforward_parameters
        return matrices + self.active_expert_parameters + router

    @property
    def mtp_parameters(self) -> int:
        """MTP layers that the checkpoint adds, sharing embedding and head with the model [1].

        Each is one layer of the last kind, two norms and a projection of two hidden states onto
        one (DeepSeek-V3, arXiv 2412.19437, section 2.2).
        """
        hidden, norms = self.hidden_size, 5 * self.hidden_size
        layer = self.attention_parameters_per_layer + 2 * hidden**2 + norms
        if self.experts is None:
            layer += self.dense_feedforward_parameters_per_layer
        else:
            layer += self.experts.num_experts * self.parameters_per_expert
            layer += self.shared_expert_parameters_per_layer + self.router_parameters_per_layer
        return self.num_mtp_layers * layer

    def weight_bytes(self, precision: Precision) -> float:
        """Weights in memory [bytes].

        Matrices of feed-forward networks, experts and (unless told otherwise) attention take
        ``precision`` (``mxfp4``: routed experts only); embedding, head, router, norms and biases
        stay in 16 bits, as published quantised checkpoints do.
        """
        quantised = WEIGHT_BYTES[precision] * self._quantised_parameters
        rest = _UNQUANTISED_BYTES * self._unquantised_parameters
        return quantised + self.expert_weight_bytes(precision) + rest

    def expert_weight_bytes(self, precision: Precision) -> float:
        """The part of ``weight_bytes`` that all routed experts take [bytes]."""
        return EXPERT_WEIGHT_BYTES[precision] * self.expert_parameters

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Cache that one token takes while it is inside the window of every layer [bytes].

        Exact without windows; with windows an upper bound that ``kv_bytes`` improves on.
        """
        return KV_BYTES[precision] * self.num_layers * self.attention.kv_elements_per_token

    def kv_bytes(self, context_tokens: npt.ArrayLike, precision: Precision) -> FloatArray:
        """Cache of sequences with these contexts, windowed layers keeping their window [bytes].

        Parameters
        ----------
        context_tokens
            Tokens of each sequence, any shape, which is the shape of the result [tokens].
        """
        context = np.asarray(context_tokens, dtype=np.float64)
        layer_tokens = self.num_layers * context
        attention = self.attention
        if attention.kind == "grouped_query" and attention.window_tokens is not None:
            beyond = np.maximum(context - attention.window_tokens, 0.0)
            layer_tokens = layer_tokens - min(attention.windowed_layers, self.num_layers) * beyond
        per_layer = KV_BYTES[precision] * attention.kv_elements_per_token
        return np.asarray(per_layer * layer_tokens, dtype=np.float64)

    @property
    def _quantised_parameters(self) -> int:
        """Matrices outside the routed experts that a quantised checkpoint quantises [1]."""
        attention = self._attention_parameters * self.quantises_attention
        return self._feedforward_parameters + attention

    @property
    def _unquantised_parameters(self) -> int:
        """Embedding, head, routers, biases and norms (two a layer and a last one) [1]."""
        norms = (2 * self.num_layers + 1) * self.hidden_size
        vectors = self.num_layers * self.attention.vector_parameters
        router = self.num_expert_layers * self.router_parameters_per_layer
        attention = self._attention_parameters * (not self.quantises_attention)
        ends = self.embedding_parameters + self.head_parameters
        return ends + attention + router + norms + vectors

    @property
    def _attention_parameters(self) -> int:
        """Projections of attention in all layers [1]."""
        return self.num_layers * self.attention.projection_parameters(self.hidden_size)

    @property
    def _feedforward_parameters(self) -> int:
        """Dense feed-forward networks and shared experts of all layers [1]."""
        return (
            self.num_dense_layers * self.dense_feedforward_parameters_per_layer
            + self.num_expert_layers * self.shared_expert_parameters_per_layer
        )
