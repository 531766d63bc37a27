"""Unequal sequences on data-parallel ranks: who gets which, and in how many micro-batches.

Ranks wait for the most loaded one, so what a batch costs depends on how its lengths are dealt.
Sequences are laid end to end in micro-batches of a fixed number of tokens, or padded.
"""

from dataclasses import dataclass
from functools import lru_cache
from heapq import heapreplace

import numpy as np
import numpy.typing as npt

from simulator.costs.flops import attended_pairs

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Loads:
    """Work of one mini-batch on each data-parallel rank, arrays of shape ``(ranks,)``."""

    tokens: FloatArray
    """Tokens that pass the layers, padding included [tokens]."""
    pairs: FloatArray
    """Pairs of a token and one it attends to, without a window [tokens^2]."""
    windowed_pairs: FloatArray
    """The same inside the model's window; equal to ``pairs`` if it has none [tokens^2]."""
    micro_batches: int
    """Micro-batches of every rank: those that the fullest one needs [1]."""


def deal(work: FloatArray, ranks: int) -> IntArray:
    """Rank of each sequence: the longest first, each to the rank with least work so far.

    Longest-processing-time assignment: the fullest rank has at most 4/3 - 1/(3 ranks) of the
    least possible (Graham, SIAM J. Appl. Math. 17, 1969).

    Parameters
    ----------
    work
        Seconds or FLOP of each sequence, shape ``(sequences,)``.
    """
    order = np.argsort(-work, kind="stable")
    heap = [(0.0, index) for index in range(ranks)]
    dealt = []
    for seconds in work[order].tolist():
        load, index = heap[0]
        dealt.append(index)
        heapreplace(heap, (load + seconds, index))
    rank = np.empty(work.size, dtype=np.int64)
    rank[order] = dealt
    return rank


def pack(
    sequence_tokens: IntArray,
    ranks: int,
    micro_batch_tokens: int,
    *,
    window_tokens: int | None = None,
    pair_tokens: float = 0.0,
    is_padded: bool = False,
    is_balanced: bool = True,
) -> Loads:
    """Deal one mini-batch to data-parallel ranks and count its micro-batches.

    A rank needs ``ceil(tokens / capacity)`` micro-batches, what verl starts from; the capacity is
    at least the longest sequence, which is never cut. All ranks run as many as the fullest one,
    since they exchange gradients and experts in step.

    Parameters
    ----------
    sequence_tokens
        Tokens of each sequence, shape ``(sequences,)`` [tokens].
    pair_tokens
        Tokens that one attended pair is worth when work is balanced [1/tokens].
    is_padded
        Whether each sequence is computed as long as the longest.
    is_balanced
        Whether sequences are dealt by work; else in order, equally many each.
    """
    lengths = np.asarray(sequence_tokens, dtype=np.float64)
    longest = float(lengths.max(initial=1.0))
    if is_padded:
        lengths = np.full_like(lengths, longest)
    pairs = attended_pairs(lengths)
    windowed = pairs if window_tokens is None else attended_pairs(lengths, 0, window_tokens)
    if ranks == 1:
        rank = np.zeros(lengths.size, dtype=np.int64)
    elif is_balanced:
        rank = deal(lengths + pair_tokens * pairs, ranks)
    else:
        rank = np.arange(lengths.size) * ranks // lengths.size

    def per_rank(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(rank, values, minlength=ranks), dtype=np.float64)

    tokens = per_rank(lengths)
    return Loads(
        tokens=tokens,
        pairs=per_rank(pairs),
        windowed_pairs=per_rank(windowed),
        micro_batches=micro_batches(float(tokens.max()), longest, micro_batch_tokens),
    )


def even(
    sequences: float, tokens: float, micro_batches: int, window_tokens: int | None = None
) -> Loads:
    """Load of a rank whose sequences are all of one length, as in pre-training.

    Parameters
    ----------
    sequences
        Sequences of a rank, not necessarily whole [1].
    tokens
        Length of each [tokens].
    """
    pairs, windowed = _pairs_of(tokens, window_tokens)
    return Loads(
        np.array([sequences * tokens]),
        np.array([sequences * pairs]),
        np.array([sequences * windowed]),
        micro_batches,
    )


def micro_batches(rank_tokens: float, longest_tokens: float, micro_batch_tokens: int) -> int:
    """Micro-batches that hold the tokens of one rank [1]."""
    return max(int(np.ceil(rank_tokens / max(float(micro_batch_tokens), longest_tokens))), 1)


@lru_cache(maxsize=256)
def _pairs_of(tokens: float, window_tokens: int | None) -> tuple[float, float]:
    """Pairs of one sequence, without and within the window [tokens^2]."""
    pairs = float(attended_pairs([tokens])[0])
    windowed = float(attended_pairs([tokens], 0, window_tokens)[0])
    return pairs, windowed
