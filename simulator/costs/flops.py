"""Floating-point operations of a model's passes: what the mathematics needs, on no hardware.

A multiplication and an addition count as two. A pass has a linear part, two FLOP for each weight
that a token is multiplied with, and an attention part, proportional to the pairs of a query token
and a token it attends to. Norms, activations, rotary embedding, softmax and the look-up of
embeddings are left out, as in common definitions of model FLOP utilisation.
"""

import numpy as np
import numpy.typing as npt

from simulator.specs.model import GroupedQueryAttention, LatentAttention, ModelSpec

FloatArray = npt.NDArray[np.float64]

_BACKWARD_OVER_FORWARD = 2.0
"""A backward pass multiplies once for inputs and once for weights [1]."""


def attended_pairs(
    new_tokens: npt.ArrayLike,
    prefix_tokens: npt.ArrayLike = 0,
    window_tokens: int | None = None,
) -> FloatArray:
    """Pairs of a new token and a token that it attends to, itself included [tokens^2].

    Parameters
    ----------
    new_tokens
        Tokens ``n`` of each sequence that a pass computes, any shape [tokens].
    prefix_tokens
        Tokens ``p`` of each sequence that are in the cache before, same shape or scalar [tokens].
    window_tokens
        Most tokens ``w`` that a token attends to; null: all before it [tokens].

    Notes
    -----
    The sum over i = 1 to n of min(p + i, w), that is F(p + n) - F(p) with F(l) = l (l + 1) / 2
    up to l = w and F(w) + (l - w) w beyond.

    >>> attended_pairs([4, 1], prefix_tokens=[0, 9], window_tokens=3)
    array([9., 3.])
    """
    prefix = np.asarray(prefix_tokens, dtype=np.float64)
    total = prefix + np.asarray(new_tokens, dtype=np.float64)
    return np.asarray(_pairs_up_to(total, window_tokens) - _pairs_up_to(prefix, window_tokens))


def causal_pairs(lengths: npt.ArrayLike, window_tokens: int | None = None) -> float:
    """Pairs of all sequences together when each is computed whole [tokens^2].

    Parameters
    ----------
    lengths
        Tokens ``l`` of each sequence, shape ``(sequences,)`` [tokens].
    window_tokens
        Most tokens that a token attends to; null: all before it [tokens].

    Notes
    -----
    Without a window, the sum of l (l + 1) / 2.

    >>> causal_pairs([3, 4])
    16.0
    """
    return float(np.sum(attended_pairs(lengths, window_tokens=window_tokens)))


def forward_flops(
    model: ModelSpec,
    tokens: npt.ArrayLike,
    context_token_pairs: npt.ArrayLike,
    logit_tokens: npt.ArrayLike,
    windowed_token_pairs: npt.ArrayLike | None = None,
) -> FloatArray:
    """One forward pass as in training and prefill [FLOP].

    Parameters
    ----------
    tokens
        Tokens that pass the layers, any shape, which is the shape of the result [tokens].
    context_token_pairs
        Pairs of such a token and one it attends to in a layer without window, such as
        ``causal_pairs(lengths)`` [tokens^2].
    logit_tokens
        Tokens that pass the output head [tokens].
    windowed_token_pairs
        Pairs in a windowed layer, such as ``causal_pairs(lengths, window_tokens)``. Default: the
        bound ``min(context_token_pairs, window_tokens * tokens)``, which is close where sequences
        are much longer than the window [tokens^2].

    Notes
    -----
    2 x ``active_matmul_parameters`` x tokens + 2 x hidden x vocabulary x logit tokens + the sum
    over layers of a x pairs. Per pair, a is 4 x heads x head width for grouped queries and
    2 x heads x (nope + rope + value width) for latent attention with its keys and values expanded.
    """
    return _linear_flops(model, tokens, logit_tokens) + _attention_flops(
        model, tokens, context_token_pairs, windowed_token_pairs, _expanded_flops_per_pair(model)
    )


def backward_flops(
    model: ModelSpec,
    tokens: npt.ArrayLike,
    context_token_pairs: npt.ArrayLike,
    logit_tokens: npt.ArrayLike,
    windowed_token_pairs: npt.ArrayLike | None = None,
) -> FloatArray:
    """The backward pass of :func:`forward_flops`, twice its work, without recomputation [FLOP]."""
    forward = forward_flops(model, tokens, context_token_pairs, logit_tokens, windowed_token_pairs)
    return _BACKWARD_OVER_FORWARD * forward


def decode_flops(
    model: ModelSpec, context_tokens: npt.ArrayLike, query_tokens: npt.ArrayLike = 1
) -> FloatArray:
    """One decode or verify pass of each sequence, with logits for every new token [FLOP].

    Parameters
    ----------
    context_tokens
        Tokens of each sequence in the cache before the pass, any shape, which is the shape of
        the result [tokens].
    query_tokens
        New tokens of each sequence: 1, or draft length + 1 to verify, same shape or scalar
        [tokens].

    Notes
    -----
    As :func:`forward_flops`, but latent attention works on the cached latent itself and takes
    2 x heads x (2 x latent width + rope width) per pair; the linear part is the same, since the
    matrices that expand the latent are multiplied with queries and outputs instead
    (DeepSeek-V2, arXiv 2405.04434, section 2.1.2).
    """
    context = np.asarray(context_tokens, dtype=np.float64)
    tokens = np.broadcast_to(np.asarray(query_tokens, dtype=np.float64), context.shape)
    window = _window_tokens(model)
    windowed = None if window is None else attended_pairs(tokens, context, window)
    pairs = attended_pairs(tokens, context)
    flops_per_pair = _expanded_flops_per_pair(model)
    if isinstance(model.attention, LatentAttention):
        latent = model.attention
        width = 2.0 * latent.kv_lora_rank + latent.qk_rope_head_dim
        flops_per_pair = 2.0 * latent.num_heads * width
    return _linear_flops(model, tokens, tokens) + _attention_flops(
        model, tokens, pairs, windowed, flops_per_pair
    )


def _pairs_up_to(length: FloatArray, window_tokens: int | None) -> FloatArray:
    if window_tokens is None:
        return length * (length + 1.0) / 2.0
    inside = np.minimum(length, float(window_tokens))
    return inside * (inside + 1.0) / 2.0 + (length - inside) * window_tokens


def _linear_flops(
    model: ModelSpec, tokens: npt.ArrayLike, logit_tokens: npt.ArrayLike
) -> FloatArray:
    layers = 2.0 * model.active_matmul_parameters * np.asarray(tokens, dtype=np.float64)
    # Tied or not, the head is multiplied: only its storage is shared with the embedding.
    head = 2.0 * model.embedding_parameters * np.asarray(logit_tokens, dtype=np.float64)
    return np.asarray(layers + head)


def _attention_flops(
    model: ModelSpec,
    tokens: npt.ArrayLike,
    context_token_pairs: npt.ArrayLike,
    windowed_token_pairs: npt.ArrayLike | None,
    flops_per_pair: float,
) -> FloatArray:
    pairs = np.asarray(context_token_pairs, dtype=np.float64)
    window = _window_tokens(model)
    if window is None:
        return np.asarray(flops_per_pair * model.num_layers * pairs)
    if windowed_token_pairs is None:
        bound = window * np.asarray(tokens, dtype=np.float64)
        windowed_token_pairs = np.minimum(pairs, bound)
    windowed = min(_windowed_layers(model), model.num_layers)
    layer_pairs = (model.num_layers - windowed) * pairs + windowed * np.asarray(
        windowed_token_pairs, dtype=np.float64
    )
    return np.asarray(flops_per_pair * layer_pairs)


def _expanded_flops_per_pair(model: ModelSpec) -> float:
    attention = model.attention
    if isinstance(attention, LatentAttention):
        width = attention.qk_nope_head_dim + attention.qk_rope_head_dim + attention.v_head_dim
        return 2.0 * attention.num_heads * width
    return 4.0 * attention.num_heads * attention.head_dim


def _window_tokens(model: ModelSpec) -> int | None:
    attention = model.attention
    return attention.window_tokens if isinstance(attention, GroupedQueryAttention) else None


def _windowed_layers(model: ModelSpec) -> int:
    attention = model.attention
    return attention.windowed_layers if isinstance(attention, GroupedQueryAttention) else 0
