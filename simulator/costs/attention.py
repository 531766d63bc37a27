"""Seconds of attention on one GPU: over a cache (decode and verify) and of prompts (prefill).

Grouped-query and latent attention share their equations. The cache is read once a sequence however
many new tokens query it; more new tokens add rows of compute, rounded up to the 16 rows of a tensor
core tile. Arrays broadcast; no sequences take no time.
"""

import numpy as np
import numpy.typing as npt

from simulator.costs.operators import FloatArray, joined
from simulator.specs.hardware import CachePrecision, HardwareProfile
from simulator.specs.kernels import DecodeAttentionFit, PrefillAttentionFit

CACHE_BYTES: dict[CachePrecision, float] = {"bf16": 2.0, "fp8": 1.0}
"""Bytes of a cached element [bytes]."""

_ACTIVATION_BYTES = 2.0
_TILE_ROWS = 16.0


def decode_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    batch: npt.ArrayLike,
    context: npt.ArrayLike,
    query_tokens: float,
    num_heads: float,
    num_kv_heads: float,
    head_dim: float,
) -> FloatArray:
    """Seconds of grouped-query attention of new tokens over a cache [s].

    ``t = t0 + || 4 b s g d ceil16(q h / g) / (P ec), (KV + KV f / (b g) + QO + B0) / (W em),
    c b g ||_p`` with ``b`` sequences of ``s`` tokens, ``g`` KV heads of width ``d``, ``h`` heads
    and ``q`` new tokens; KV and QO are the bytes of cache, queries and outputs.

    Parameters
    ----------
    batch, context
        Sequences, and mean tokens in their cache, any shapes that broadcast [1, tokens].
    query_tokens
        New tokens of each sequence [tokens].
    num_heads, num_kv_heads
        Heads on this GPU [1].
    """
    fit = profile.kernels.decode_attention[kv_precision]
    return decode_seconds(
        fit,
        profile.device.peak_flops_per_s["bf16"],
        profile.device.hbm_bytes_per_s,
        batch,
        context,
        groups=num_kv_heads,
        rows=query_tokens * num_heads / num_kv_heads,
        key_width=head_dim,
        value_width=head_dim,
        cache_width_bytes=2.0 * head_dim * CACHE_BYTES[kv_precision],
    )


def mla_decode_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    batch: npt.ArrayLike,
    context: npt.ArrayLike,
    query_tokens: float,
    num_heads: float,
    latent_dim: float,
    rope_dim: float,
) -> FloatArray:
    """Seconds of latent attention over a cache, with the up-projections absorbed [s].

    The equation of :func:`decode_attention_s` with one group of all heads, keys as wide as latent
    and rotary part, values as wide as the latent, and a cache that holds both once.
    """
    fit = profile.kernels.latent_decode_attention[kv_precision]
    return decode_seconds(
        fit,
        profile.device.peak_flops_per_s["bf16"],
        profile.device.hbm_bytes_per_s,
        batch,
        context,
        groups=1.0,
        rows=query_tokens * num_heads,
        key_width=latent_dim + rope_dim,
        value_width=latent_dim,
        cache_width_bytes=(latent_dim + rope_dim) * CACHE_BYTES[kv_precision],
    )


def decode_seconds(
    fit: DecodeAttentionFit,
    peak_flops_per_s: float,
    bytes_per_s: float,
    batch: npt.ArrayLike,
    context: npt.ArrayLike,
    *,
    groups: npt.ArrayLike,
    rows: npt.ArrayLike,
    key_width: float,
    value_width: float,
    cache_width_bytes: float,
) -> FloatArray:
    """The equation of :func:`decode_attention_s` with its coefficients spelt out [s].

    Parameters
    ----------
    groups
        Caches of one sequence that are read separately: KV heads [1].
    rows
        Query rows that share one of them [1].
    """
    sequences, tokens, caches, queries = (
        np.asarray(value, dtype=np.float64) for value in (batch, context, groups, rows)
    )
    width = key_width + value_width
    paid_rows = np.ceil(queries / _TILE_ROWS) * _TILE_ROWS
    flops = 2.0 * sequences * tokens * caches * width * paid_rows
    cache_bytes = sequences * tokens * caches * cache_width_bytes
    spare_bytes = fit.few_groups * tokens * cache_width_bytes
    query_bytes = _ACTIVATION_BYTES * sequences * caches * queries * width
    seconds = fit.launch_s + joined(
        fit.norm,
        flops / (peak_flops_per_s * fit.compute_efficiency),
        (cache_bytes + spare_bytes + query_bytes + fit.fixed_bytes)
        / (bytes_per_s * fit.memory_efficiency),
        fit.group_s * sequences * caches,
    )
    bound = cache_bytes / bytes_per_s
    return np.where(sequences > 0, np.maximum(seconds, bound), 0.0)


def prefill_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    num_sequences: npt.ArrayLike,
    new_tokens: npt.ArrayLike,
    prefix_tokens: npt.ArrayLike,
    num_heads: float,
    num_kv_heads: float,
    head_dim: float,
) -> FloatArray:
    """Seconds of causal grouped-query attention of prompts, or of chunks after a prefix [s].

    ``t = t0 + || 4 d (b h s + R0) (s/2 + x + S0) / (P ec), (QO + KV) / (W em), c b h ||_p
    + q 2 b s h d / W`` with ``b`` sequences of ``s`` new tokens after ``x`` cached ones.

    Parameters
    ----------
    num_sequences
        Sequences; may be fractional [1].
    new_tokens, prefix_tokens
        Tokens computed for each, and tokens that they find in the cache [tokens].
    num_heads, num_kv_heads
        Heads on this GPU [1].
    """
    fit = profile.kernels.prefill_attention[kv_precision]
    return prefill_seconds(
        fit,
        profile.device.peak_flops_per_s["bf16"],
        profile.device.hbm_bytes_per_s,
        num_sequences,
        new_tokens,
        prefix_tokens,
        heads=num_heads,
        key_width=head_dim,
        value_width=head_dim,
        cache_bytes_per_token=2.0 * num_kv_heads * head_dim * CACHE_BYTES[kv_precision],
    )


def mla_prefill_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    num_sequences: npt.ArrayLike,
    new_tokens: npt.ArrayLike,
    prefix_tokens: npt.ArrayLike,
    num_heads: float,
    key_width: float,
    value_width: float,
) -> FloatArray:
    """Seconds of causal latent attention of prompts, with keys and values expanded [s].

    The equation of :func:`prefill_attention_s` with every head its own keys and values.
    """
    fit = profile.kernels.latent_prefill_attention[kv_precision]
    return prefill_seconds(
        fit,
        profile.device.peak_flops_per_s["bf16"],
        profile.device.hbm_bytes_per_s,
        num_sequences,
        new_tokens,
        prefix_tokens,
        heads=num_heads,
        key_width=key_width,
        value_width=value_width,
        cache_bytes_per_token=num_heads * (key_width + value_width) * _ACTIVATION_BYTES,
    )


def prefill_seconds(
    fit: PrefillAttentionFit,
    peak_flops_per_s: float,
    bytes_per_s: float,
    num_sequences: npt.ArrayLike,
    new_tokens: npt.ArrayLike,
    prefix_tokens: npt.ArrayLike,
    *,
    heads: npt.ArrayLike,
    key_width: float,
    value_width: float,
    cache_bytes_per_token: npt.ArrayLike,
) -> FloatArray:
    """The equation of :func:`prefill_attention_s` with its coefficients spelt out [s]."""
    sequences, new, prefix, count = (
        np.asarray(value, dtype=np.float64)
        for value in (num_sequences, new_tokens, prefix_tokens, heads)
    )
    width = key_width + value_width
    rows = sequences * count * new
    span = new / 2.0 + prefix
    query_bytes = _ACTIVATION_BYTES * rows * width
    cache_bytes = sequences * (new + prefix) * np.asarray(cache_bytes_per_token)
    seconds = fit.launch_s + joined(
        fit.norm,
        2.0
        * width
        * (rows + fit.idle_rows)
        * (span + fit.prologue_tokens)
        / (peak_flops_per_s * fit.compute_efficiency),
        (query_bytes + cache_bytes) / (bytes_per_s * fit.memory_efficiency),
        fit.head_s * sequences * count,
    )
    if fit.quantise_passes:
        seconds = seconds + fit.quantise_passes * rows * key_width * _ACTIVATION_BYTES / bytes_per_s
    bound = np.maximum(
        2.0 * width * rows * span / peak_flops_per_s, (query_bytes + cache_bytes) / bytes_per_s
    )
    return np.where(sequences * new > 0, np.maximum(seconds, bound), 0.0)
