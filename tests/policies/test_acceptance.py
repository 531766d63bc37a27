"""Acceptance laws: closed forms, round trips, rounds against a token-by-token simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.policies.acceptance import (
    BetaAcceptance,
    EmpiricalAcceptance,
    MeanAcceptance,
    PositionalAcceptance,
    geometric_acceptance_length,
    geometric_acceptance_rate,
    geometric_second_moment,
    verify_rounds,
)


@given(st.floats(0.0, 0.999), st.integers(1, 16))
def test_length_of_geometric_acceptance_is_the_closed_form(alpha, draft_length):
    closed_form = (1 - alpha ** (draft_length + 1)) / (1 - alpha)
    assert geometric_acceptance_length(np.array(alpha), draft_length) == pytest.approx(closed_form)


@given(st.floats(0.0, 1.0), st.integers(1, 16))
def test_rate_and_length_are_inverse(alpha, draft_length):
    length = geometric_acceptance_length(np.array(alpha), draft_length)
    back = geometric_acceptance_length(
        geometric_acceptance_rate(length, draft_length), draft_length
    )
    assert back == pytest.approx(float(length), rel=1e-4)


def _emitted(alpha, draft_length, rounds, generator):
    accepted = generator.random((rounds, draft_length)) < alpha
    return 1 + np.cumprod(accepted, axis=1).sum(axis=1)


def test_second_moment_matches_simulated_rounds():
    emitted = _emitted(0.7, 5, 300_000, np.random.default_rng(2))
    length = geometric_acceptance_length(np.array(0.7), 5)
    expected = float(geometric_second_moment(np.array([length]), 5)[0])
    error = (emitted**2.0).std() / emitted.size**0.5
    assert abs((emitted**2.0).mean() - expected) < 4.5 * error


def test_rounds_have_the_mean_and_spread_of_real_rounds():
    alpha, draft_length, tokens, requests = 0.75, 3, 400, 20_000
    generator = np.random.default_rng(7)
    emitted = _emitted(alpha, draft_length, requests * tokens, generator).reshape(requests, tokens)
    real = (np.cumsum(emitted, axis=1) < tokens).sum(axis=1) + 1
    length = np.full(requests, geometric_acceptance_length(np.array(alpha), draft_length))
    drawn = verify_rounds(
        np.full(requests, tokens),
        length,
        geometric_second_moment(length, draft_length),
        generator.standard_normal(requests),
        draft_length,
    )
    error = (real.var() / requests + drawn.var() / requests) ** 0.5
    assert abs(real.mean() - drawn.mean()) < 4.5 * error + 0.05
    assert drawn.std() == pytest.approx(real.std(), rel=0.05)


@given(st.integers(0, 5000), st.integers(0, 8), st.floats(0, 1), st.floats(-4, 4))
def test_rounds_stay_between_the_two_certain_bounds(tokens, draft_length, alpha, normal):
    length = geometric_acceptance_length(np.array([alpha]), draft_length)
    rounds = verify_rounds(
        np.array([tokens]),
        length,
        geometric_second_moment(length, draft_length),
        np.array([normal]),
        draft_length,
    )[0]
    assert -(-tokens // (draft_length + 1)) <= rounds <= tokens


def test_draft_length_zero_takes_one_round_a_token():
    tokens = np.array([0, 1, 17, 4000])
    ones = np.ones(4)
    assert verify_rounds(tokens, ones, ones, np.array([3.0, -3.0, 1.0, 0.5]), 0).tolist() == [
        0,
        1,
        17,
        4000,
    ]


def test_full_acceptance_is_exact():
    tokens = np.array([7, 8, 9])
    four = np.full(3, 4.0)
    assert verify_rounds(tokens, four, four**2, np.zeros(3), 3).tolist() == [2, 2, 3]


def test_positional_rates_sum_to_the_acceptance_length():
    law = PositionalAcceptance(rates=(0.8, 0.6, 0.4))
    assert law.request_lengths(np.zeros(2), 3).tolist() == pytest.approx([2.8, 2.8])
    assert law.request_lengths(np.zeros(1), 2)[0] == pytest.approx(2.4)


def test_rates_that_increase_are_refused():
    with pytest.raises(ValueError, match="never increase"):
        PositionalAcceptance(rates=(0.5, 0.6))


@pytest.mark.parametrize(
    ("law", "draft_length"),
    [
        (MeanAcceptance(length=4.5), 3),
        (PositionalAcceptance(rates=(0.9,)), 3),
        (BetaAcceptance(mean=4.2, std=0.1), 3),
        (BetaAcceptance(mean=2.0, std=5.0), 3),
        (EmpiricalAcceptance(lengths=(1.5, 4.5)), 3),
    ],
    ids=["mean", "positional", "beta mean", "beta spread", "empirical"],
)
def test_what_the_draft_length_cannot_reach_is_refused(law, draft_length):
    with pytest.raises(ValueError, match=r"draft_length|must stay below"):
        law.check(draft_length)


def test_beta_law_has_the_mean_and_spread_that_were_given():
    law = BetaAcceptance(mean=2.6, std=0.35)
    normal = np.random.default_rng(11).standard_normal(100_000)
    lengths = law.request_lengths(normal, 3)
    assert lengths.mean() == pytest.approx(2.6, abs=4.5 * 0.35 / 100_000**0.5)
    assert lengths.std() == pytest.approx(0.35, rel=0.02)
    assert lengths.min() >= 1.0
    assert lengths.max() <= 4.0
