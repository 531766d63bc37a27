"""Seconds of attention on one GPU: over a cache (decode and verify) and of prompts (prefill).

Grouped-query and latent attention share their equations. The cache is read once a sequence however
many new tokens query it; more new tokens add rows of compute, rounded up to the 16 rows of a tensor
core tile. A kernel is fitted for one width of its heads; other widths are priced by the nearest
one. Arrays broadcast; no sequences take no time.
"""

import math

import numpy as np
import numpy.typing as npt

from simulator.costs.operators import FloatArray, joined
from simulator.specs.hardware import CachePrecision, HardwareProfile
from simulator.specs.kernels import DecodeAttentionFit, PrefillAttentionFit

CACHE_BYTES: dict[CachePrecision, float] = {"bf16": 2.0, "fp8": 1.0}
"""Bytes of a cached element [bytes]."""

_ACTIVATION_BYTES = 2.0
_TILE_ROWS = 16.0
_WRITING_THREADS = 512.0
"""Most threads that write one token to the cache, each an element after the other [1]."""


def decode_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    batch: npt.ArrayLike,
    context: npt.ArrayLike,
    query_tokens: float,
    num_heads: float,
    num_kv_heads: float,
    head_dim: float,
    window: float = math.inf,
) -> FloatArray:
    """Seconds of grouped-query attention of new tokens over a cache [s].

    ``t = t0 + || 4 b s g d ceil16(q h / g) / (P ec), (KV + f QO + B0) / (W em) + r sqrt(s), l s,
    c b g ||_p`` with ``b`` sequences of ``s`` tokens, ``g`` KV heads of width ``d``, ``h`` heads
    and ``q`` new tokens; KV and QO are the bytes of cache, queries and outputs. A window of ``w``
    tokens makes ``s = min(s, w + w0)``, and adds ``t1`` where it is shorter than the context.

    Parameters
    ----------
    batch, context
        Sequences, and mean tokens in their cache, any shapes that broadcast [1, tokens].
    query_tokens
        New tokens of each sequence [tokens].
    num_heads, num_kv_heads
        Heads on this GPU [1].
    window
        Tokens that a query attends to [tokens].
    """
    return decode_seconds(
        profile.kernels.decode_attention[kv_precision].of_width(head_dim),
        profile.device.peak_flops_per_s[kv_precision],
        profile.device.hbm_bytes_per_s,
        batch,
        context,
        groups=num_kv_heads,
        rows=query_tokens * num_heads / num_kv_heads,
        key_width=head_dim,
        value_width=head_dim,
        cache_width_bytes=2.0 * head_dim * CACHE_BYTES[kv_precision],
        window=window,
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
    return decode_seconds(
        profile.kernels.latent_decode_attention[kv_precision],
        profile.device.peak_flops_per_s[kv_precision],
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
    window: npt.ArrayLike = math.inf,
) -> FloatArray:
    """The equation of :func:`decode_attention_s` with its coefficients spelt out [s].

    Parameters
    ----------
    groups
        Caches of one sequence that are read separately: KV heads [1].
    rows
        Query rows that share one of them [1].
    """
    sequences, tokens, caches, queries, span = (
        np.asarray(value, dtype=np.float64) for value in (batch, context, groups, rows, window)
    )
    read = np.minimum(tokens, span + fit.window_tokens)
    width = key_width + value_width
    paid_rows = np.ceil(queries / _TILE_ROWS) * _TILE_ROWS
    flops = 2.0 * sequences * read * caches * width * paid_rows
    cache_bytes = sequences * read * caches * cache_width_bytes
    query_bytes = _ACTIVATION_BYTES * sequences * caches * queries * width
    moved_s = (cache_bytes + fit.query_traffic * query_bytes + fit.fixed_bytes) / (
        bytes_per_s * fit.memory_efficiency
    )
    seconds = fit.launch_s + joined(
        fit.norm,
        flops / (peak_flops_per_s * fit.compute_efficiency),
        moved_s + fit.root_s * np.sqrt(read),
        fit.token_s * read,
        fit.group_s * sequences * caches,
    )
    seconds = seconds + np.where(tokens > span, fit.window_s, 0.0)
    attended_bytes = sequences * np.minimum(tokens, span) * caches * cache_width_bytes
    return np.where(sequences > 0, np.maximum(seconds, attended_bytes / bytes_per_s), 0.0)


def prefill_attention_s(
    profile: HardwareProfile,
    kv_precision: CachePrecision,
    num_sequences: npt.ArrayLike,
    new_tokens: npt.ArrayLike,
    prefix_tokens: npt.ArrayLike,
    num_heads: float,
    num_kv_heads: float,
    head_dim: float,
    window: float = math.inf,
) -> FloatArray:
    """Seconds of causal grouped-query attention of prompts, or of chunks after a prefix [s].

    ``t = t0 + || 4 d (b h s + R0) (a + S0) / (P ec), (QO + KV) / (W em), c b h ||_p
    + b s (t1 min(g d, 512) + t2 g d)`` with ``b`` sequences of ``s`` new tokens after ``x`` cached
    ones, which attend to ``a`` tokens in the mean: ``s/2 + x``, or fewer inside a window, of which
    ``w0`` tokens more are computed. The last term writes the new tokens to the cache, each by a
    block of at most 512 threads.

    Parameters
    ----------
    num_sequences
        Sequences; may be fractional [1].
    new_tokens, prefix_tokens
        Tokens computed for each, and tokens that they find in the cache [tokens].
    num_heads, num_kv_heads
        Heads on this GPU [1].
    window
        Tokens that a query attends to [tokens].
    """
    return prefill_seconds(
        profile.kernels.prefill_attention[kv_precision].of_width(head_dim),
        profile.device.peak_flops_per_s[kv_precision],
        profile.device.hbm_bytes_per_s,
        num_sequences,
        new_tokens,
        prefix_tokens,
        heads=num_heads,
        key_width=head_dim,
        value_width=head_dim,
        cache_bytes_per_token=2.0 * num_kv_heads * head_dim * CACHE_BYTES[kv_precision],
        written_width=num_kv_heads * head_dim,
        window=window,
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

    The equation of :func:`prefill_attention_s` with every head its own keys and values, of which
    the cache takes as much as one head's keys.
    """
    return prefill_seconds(
        profile.kernels.latent_prefill_attention[kv_precision],
        profile.device.peak_flops_per_s[kv_precision],
        profile.device.hbm_bytes_per_s,
        num_sequences,
        new_tokens,
        prefix_tokens,
        heads=num_heads,
        key_width=key_width,
        value_width=value_width,
        cache_bytes_per_token=num_heads * (key_width + value_width) * _ACTIVATION_BYTES,
        written_width=key_width,
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
    written_width: npt.ArrayLike,
    window: npt.ArrayLike = math.inf,
) -> FloatArray:
    """The equation of :func:`prefill_attention_s` with its coefficients spelt out [s].

    Parameters
    ----------
    written_width
        Elements of a token's keys that are written to the cache [1].
    """
    sequences, new, prefix, count, written, span = (
        np.asarray(value, dtype=np.float64)
        for value in (num_sequences, new_tokens, prefix_tokens, heads, written_width, window)
    )
    width = key_width + value_width
    rows = sequences * count * new
    attended = _mean_attended(new, prefix, span)
    computed = _mean_attended(new, prefix, span + fit.window_tokens)
    query_bytes = _ACTIVATION_BYTES * rows * width
    cached = new + np.minimum(prefix, span)
    moved_s = (query_bytes + sequences * cached * np.asarray(cache_bytes_per_token)) / bytes_per_s
    seconds = fit.launch_s + joined(
        fit.norm,
        2.0
        * width
        * (rows + fit.idle_rows)
        * (computed + fit.prologue_tokens)
        / (peak_flops_per_s * fit.compute_efficiency),
        moved_s / fit.memory_efficiency,
        fit.head_s * sequences * count,
    )
    threads = np.minimum(written, _WRITING_THREADS)
    seconds = seconds + sequences * new * (
        fit.write_thread_s * threads + fit.write_element_s * written
    )
    bound = np.maximum(2.0 * width * rows * attended / peak_flops_per_s, moved_s)
    return np.where(sequences * new > 0, np.maximum(seconds, bound), 0.0)


def _mean_attended(new: FloatArray, prefix: FloatArray, window: FloatArray) -> FloatArray:
    """Tokens that a new token attends to in the mean, at most ``window`` of those before it."""
    # New tokens before which the window is not yet full.
    free = np.clip(window - prefix, 0.0, new)
    full = np.where(new > free, window, 0.0)
    return np.asarray(
        (free * (prefix + free / 2.0) + (new - free) * full) / np.maximum(new, 1e-300)
    )
