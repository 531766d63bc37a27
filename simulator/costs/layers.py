"""Seconds of the parts of one forward pass on one GPU of an instance.

Each function prices one kind of part (attention block, dense feed-forward, experts, head) over
all layers of the model, vectorised over iterations. Arrays have shape ``(n,)``, one element an
iteration; every GPU of an attention replica does the same work, so one GPU's seconds are the
instance's. Parts follow one another: nothing is overlapped.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.costs.attention import (
    decode_attention_s,
    mla_decode_attention_s,
    mla_prefill_attention_s,
    prefill_attention_s,
)
from simulator.costs.collectives import all_reduce_s, moe_all_to_all_s
from simulator.costs.experts import moe_s
from simulator.costs.operators import elementwise_s, gemm_s
from simulator.specs.engine import KvPrecision
from simulator.specs.hardware import HardwareProfile, KernelPrecision, Precision
from simulator.specs.model import GroupedQueryAttention, LatentAttention, ModelSpec
from simulator.specs.parallelism import EngineParallelism

FloatArray = npt.NDArray[np.float64]

ACTIVATION_BYTES = 2.0
"""Activations travel in 16 bits between operators [bytes]."""
_ELEMENTWISE_BYTES = 16.0
"""Norms, rotary embedding and activations, per hidden element and layer [bytes]."""
_NORM_BYTES = 8.0
"""Sums of squares of one token's queries and keys, in 32 bits [bytes]."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model on an instance: everything about a forward pass that does not change."""

    model: ModelSpec
    profile: HardwareProfile
    parallelism: EngineParallelism
    precision: Precision
    kv_precision: KvPrecision

    @property
    def gemm_kernel(self) -> KernelPrecision:
        """Kernel of dense products outside attention."""
        return self.profile.kernel_choice[self.precision].gemm

    @property
    def attention_kernel(self) -> KernelPrecision:
        """Kernel of attention's projections, which some checkpoints leave in 16 bits."""
        return self.gemm_kernel if self.model.quantises_attention else "bf16"


@dataclass(frozen=True, slots=True)
class RankBatch:
    """What one GPU of an attention replica works on in each iteration, arrays ``(n,)``."""

    sequences: FloatArray
    """Decoding sequences of this attention replica [1]."""
    context_tokens: FloatArray
    """Mean context of a decoding sequence [tokens]."""
    query_tokens: int
    """New tokens of each decoding sequence [tokens]."""
    prefill_tokens: FloatArray
    """Prompt tokens computed beside them [tokens]."""
    prefill_context: FloatArray
    """Sum over the prompt tokens of the tokens they attend to [tokens^2]."""

    @property
    def tokens(self) -> FloatArray:
        """All tokens that pass through the layers [tokens]."""
        return self.sequences * self.query_tokens + self.prefill_tokens


def attention_projections_s(target: Target, tokens: FloatArray) -> FloatArray:
    """Query, key, value and output projections of all layers [s].

    With latent attention the down-projections of queries and keys are one product, copied on each
    tensor rank; the up-projections that are absorbed into queries and outputs stay in 16 bits.
    """
    model, ranks = target.model, target.parallelism.tensor
    absorbed: list[tuple[float, float]] = []
    hidden, attention = model.hidden_size, model.attention
    match attention:
        case GroupedQueryAttention():
            heads = attention.num_heads / ranks
            kv_heads = max(attention.num_kv_heads / ranks, 1.0)
            width = attention.head_dim
            shapes = [((heads + 2.0 * kv_heads) * width, hidden), (hidden, heads * width)]
        case LatentAttention():
            heads = attention.num_heads / ranks
            query_width = attention.qk_nope_head_dim + attention.qk_rope_head_dim
            latent, rank = attention.kv_lora_rank, attention.q_lora_rank
            down = latent + attention.qk_rope_head_dim + (rank or 0)
            shapes = [
                (down, hidden),
                (heads * query_width, rank or hidden),
                (hidden, heads * attention.v_head_dim),
            ]
            absorbed = [
                (heads * latent, attention.qk_nope_head_dim),
                (heads * attention.v_head_dim, latent),
            ]
    one_layer_s = _gemms_s(target, target.attention_kernel, tokens, shapes) + _gemms_s(
        target, "bf16", tokens, absorbed
    )
    return model.num_layers * one_layer_s


def attention_scores_s(target: Target, batch: RankBatch) -> FloatArray:
    """Scores and weighted values over the KV cache, and over the prompts being computed [s]."""
    model = target.model
    windowed = 0
    window = math.inf
    if isinstance(model.attention, GroupedQueryAttention) and model.attention.window_tokens:
        windowed, window = model.attention.windowed_layers, float(model.attention.window_tokens)
    total = (model.num_layers - windowed) * _scores_one_layer_s(target, batch, math.inf)
    if windowed:
        total = total + windowed * _scores_one_layer_s(target, batch, window)
    return total


def _scores_one_layer_s(target: Target, batch: RankBatch, window: float) -> FloatArray:
    attention, ranks = target.model.attention, target.parallelism.tensor
    context = batch.context_tokens
    prompts, new_tokens, prefix = _prefill_shape(batch.prefill_tokens, batch.prefill_context)
    kv, profile = target.kv_precision, target.profile
    heads = max(attention.num_heads / ranks, 1.0)
    if isinstance(attention, GroupedQueryAttention):
        kv_heads = max(attention.num_kv_heads / ranks, 1.0)
        width = attention.head_dim
        decode = decode_attention_s(
            profile,
            kv,
            batch.sequences,
            context,
            batch.query_tokens,
            heads,
            kv_heads,
            width,
            window,
        )
        if not np.any(batch.prefill_tokens):
            return decode
        return decode + prefill_attention_s(
            profile, kv, prompts, new_tokens, prefix, heads, kv_heads, width, window
        )
    decode = mla_decode_attention_s(
        profile,
        kv,
        batch.sequences,
        context,
        batch.query_tokens,
        heads,
        attention.kv_lora_rank,
        attention.qk_rope_head_dim,
    )
    if not np.any(batch.prefill_tokens):
        return decode
    return decode + mla_prefill_attention_s(
        profile,
        kv,
        prompts,
        new_tokens,
        prefix,
        heads,
        attention.qk_nope_head_dim + attention.qk_rope_head_dim,
        attention.v_head_dim,
    )


def _prefill_shape(
    tokens: FloatArray, attended: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Equal prompts, or one chunk after a prefix, with this many tokens and attended pairs."""
    mean_span = 2.0 * attended / np.maximum(tokens, 1.0)
    is_whole = mean_span <= tokens
    length = np.where(is_whole, np.maximum(mean_span, 1.0), np.maximum(tokens, 1.0))
    prompts = tokens / length
    prefix = np.where(is_whole, 0.0, (mean_span - tokens) / 2.0)
    return prompts, length, np.maximum(prefix, 0.0)


def dense_feedforward_s(target: Target, tokens: FloatArray) -> FloatArray:
    """Gate, up and down projections of the layers without experts [s]."""
    model = target.model
    if model.num_dense_layers == 0:
        return np.zeros_like(tokens)
    width = model.dense_intermediate / target.parallelism.tensor
    shapes = [(2.0 * width, model.hidden_size), (model.hidden_size, width)]
    return model.num_dense_layers * _gemms_s(target, target.gemm_kernel, tokens, shapes)


def expert_layers_s(target: Target, tokens: FloatArray, instance_tokens: FloatArray) -> FloatArray:
    """Router, shared and routed experts, with dispatch and combine, of all expert layers [s].

    Parameters
    ----------
    tokens
        Tokens of this attention replica, shape ``(n,)`` [tokens].
    instance_tokens
        Tokens of all attention replicas, which share the experts, shape ``(n,)`` [tokens].
    """
    model, ranks, profile = target.model, target.parallelism, target.profile
    experts = model.experts
    if experts is None:
        return np.zeros_like(tokens)
    hidden = model.hidden_size
    kernel = profile.kernel_choice[target.precision].moe
    routed = moe_s(
        profile,
        kernel,
        instance_tokens,
        hidden,
        experts.intermediate,
        experts.experts_per_token,
        experts.num_experts,
        ranks.expert_tensor,
        ranks.expert,
    )
    total = routed + gemm_s(profile, "bf16", tokens, experts.num_experts, hidden)
    if experts.num_shared_experts:
        width = experts.num_shared_experts * experts.shared_intermediate / ranks.tensor
        shapes = [(2.0 * width, hidden), (hidden, width)]
        total = total + _gemms_s(target, target.gemm_kernel, tokens, shapes)
    if ranks.data > 1:
        gpus = ranks.tensor * ranks.data
        total = total + moe_all_to_all_s(
            profile,
            instance_tokens / gpus,
            hidden,
            experts.experts_per_token,
            gpus,
            ACTIVATION_BYTES,
        )
    elif ranks.tensor > 1:
        total = total + all_reduce_s(profile, ACTIVATION_BYTES * tokens * hidden, ranks.tensor)
    return model.num_expert_layers * total


def tensor_reductions_s(target: Target, tokens: FloatArray) -> FloatArray:
    """All-reduces after attention and dense feed-forward, and pipeline hand-overs [s].

    A norm of queries and keys that spans all heads adds one of two sums of squares a token.
    """
    model, ranks = target.model, target.parallelism
    num_bytes = ACTIVATION_BYTES * tokens * model.hidden_size
    count = model.num_layers + model.num_dense_layers
    total = count * all_reduce_s(target.profile, num_bytes, ranks.tensor)
    if isinstance(model.attention, GroupedQueryAttention) and model.attention.norm_spans_heads:
        squares_bytes = _NORM_BYTES * tokens
        total = total + model.num_layers * all_reduce_s(target.profile, squares_bytes, ranks.tensor)
    if ranks.pipeline > 1:
        rate = target.profile.network.scale_up_bytes_per_s
        total = total + (ranks.pipeline - 1) * num_bytes / rate
    return total


def elementwise_layers_s(target: Target, tokens: FloatArray) -> FloatArray:
    """Norms, rotary embeddings and activations of all layers [s]."""
    num_bytes = _ELEMENTWISE_BYTES * tokens * target.model.hidden_size
    return target.model.num_layers * elementwise_s(target.profile, num_bytes)


def head_s(target: Target, rows: FloatArray) -> FloatArray:
    """Output projection of the rows that need logits [s]."""
    width = target.model.vocab_size / target.parallelism.tensor
    return gemm_s(target.profile, "bf16", rows, width, target.model.hidden_size)


def _gemms_s(
    target: Target,
    kernel: KernelPrecision,
    tokens: FloatArray,
    shapes: list[tuple[float, float]],
) -> FloatArray:
    total = np.zeros_like(tokens)
    for columns, inner in shapes:
        total = total + gemm_s(target.profile, kernel, tokens, columns, inner)
    return total
