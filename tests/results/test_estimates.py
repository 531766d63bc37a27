"""Intervals: coverage where the truth is known, and what pairing is worth."""

import numpy as np
import pytest

from simulator.results.estimates import estimate_mean, estimate_ratio


def test_mean_intervals_cover_the_truth_as_often_as_they_claim():
    generator = np.random.default_rng(0)
    trials = 2000
    hits = 0
    for _ in range(trials):
        estimate = estimate_mean(generator.normal(10.0, 2.0, 8))
        hits += estimate.low <= 10.0 <= estimate.high
    error = (0.95 * 0.05 / trials) ** 0.5
    assert abs(hits / trials - 0.95) < 4.5 * error


def test_ratio_intervals_cover_the_truth():
    generator = np.random.default_rng(1)
    trials, hits = 1000, 0
    for _ in range(trials):
        common = generator.normal(10.0, 2.0, 30)
        top = 2.0 * common + generator.normal(0, 0.3, 30)
        estimate = estimate_ratio(top, common + generator.normal(0, 0.3, 30))
        hits += estimate.low <= 2.0 <= estimate.high
    assert hits / trials > 0.92


def test_pairing_narrows_the_interval():
    generator = np.random.default_rng(2)
    common = generator.normal(10.0, 2.0, 40)
    paired = estimate_ratio(2 * common, common + generator.normal(0, 0.05, 40))
    unpaired = estimate_ratio(2 * common, generator.permutation(common))
    assert paired.high - paired.low < 0.2 * (unpaired.high - unpaired.low)


def test_one_block_gives_a_point():
    estimate = estimate_mean(np.array([4.0]))
    assert (estimate.mean, estimate.low, estimate.high) == (4.0, 4.0, 4.0)
    assert estimate_ratio(np.array([6.0]), np.array([3.0])).high == pytest.approx(2.0)
