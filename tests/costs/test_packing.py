"""Unequal sequences on data-parallel ranks: nothing lost, nobody overloaded."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.costs.packing import deal, even, pack

LENGTHS = st.lists(st.integers(1, 20_000), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 64), st.booleans())
def test_tokens_and_pairs_in_are_tokens_and_pairs_out(lengths, ranks, is_balanced):
    sequences = np.array(lengths)
    loads = pack(sequences, ranks, 8192, is_balanced=is_balanced)
    assert loads.tokens.sum() == sequences.sum()
    assert loads.pairs.sum() == pytest.approx((sequences * (sequences + 1) / 2).sum())
    assert loads.tokens.shape == (ranks,)


@given(LENGTHS, st.integers(1, 64))
def test_the_micro_batches_hold_the_fullest_rank_and_no_sequence_is_cut(lengths, ranks):
    sequences = np.array(lengths)
    loads = pack(sequences, ranks, 8192)
    capacity = max(8192, sequences.max())
    assert loads.micro_batches * capacity >= loads.tokens.max()
    assert (loads.micro_batches - 1) * capacity < loads.tokens.max()


@given(LENGTHS, st.integers(1, 32))
def test_longest_first_stays_within_grahams_bound(lengths, ranks):
    """The fullest rank has at most 4/3 - 1/(3 ranks) of any assignment's, so of the lower bounds'
    maximum where that is reached; the weaker bound of mean + longest always holds."""
    work = np.array(lengths, dtype=float)
    loads = np.bincount(deal(work, ranks), work, minlength=ranks)
    assert loads.max() <= work.sum() / ranks + (1 - 1 / ranks) * work.max() + 1e-6


def test_dealing_is_optimal_where_the_optimum_is_known():
    """Graham's example: 5, 5, 4, 4, 3, 3, 3 on three ranks is dealt 11 where 9 is possible."""
    loads = np.bincount(
        deal(np.array([5.0, 5, 4, 4, 3, 3, 3]), 3), [5, 5, 4, 4, 3, 3, 3], minlength=3
    )
    assert loads.max() == 11
    assert np.ptp(np.bincount(deal(np.ones(12), 4), minlength=4)) == 0


def test_balance_by_work_beats_the_order_of_the_batch():
    lengths = np.sort(np.random.default_rng(1).lognormal(8, 0.8, 512).astype(int) + 1)
    dealt = pack(lengths, 16, 16_384)
    in_order = pack(lengths, 16, 16_384, is_balanced=False)
    assert dealt.tokens.max() < 1.01 * dealt.tokens.mean()
    assert in_order.tokens.max() > 2.0 * in_order.tokens.mean()
    assert dealt.tokens.mean() == in_order.tokens.mean()


def test_ranks_in_order_hold_equally_many_sequences():
    loads = pack(np.full(10, 100), 5, 1000, is_balanced=False)
    assert loads.tokens.tolist() == [200.0] * 5


def test_padding_computes_every_sequence_at_the_length_of_the_longest():
    lengths = np.array([100, 200, 400, 1000])
    loads = pack(lengths, 2, 1000, is_padded=True)
    assert loads.tokens.sum() == 4 * 1000
    assert loads.micro_batches == 2


def test_a_window_bounds_the_pairs():
    loads = pack(np.array([1000, 50]), 1, 4096, window_tokens=128)
    assert loads.windowed_pairs[0] < loads.pairs[0]
    assert loads.windowed_pairs[0] == pytest.approx(128 * 129 / 2 + 872 * 128 + 50 * 51 / 2)


def test_an_even_load_is_what_packing_equal_sequences_gives():
    packed, expected = pack(np.full(8, 512), 2, 1024), even(4, 512, 2)
    assert packed.tokens[0] == expected.tokens[0]
    assert packed.pairs[0] == expected.pairs[0]
    assert packed.micro_batches == expected.micro_batches


def test_packing_a_large_batch_is_cheap():
    """Under 5 ms for 4,096 sequences on a quiet machine; the best of several, four times that."""
    lengths = np.random.default_rng(0).integers(100, 16_000, 4096)
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        pack(lengths, 64, 16_384, pair_tokens=1e-5)
        best = min(best, time.perf_counter() - begin)
    assert best < 0.02
