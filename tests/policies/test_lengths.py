"""Laws of length: means that they claim, order that they keep, limits that they respect."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.policies.lengths import (
    EmpiricalLength,
    FixedLength,
    GammaLength,
    GroupCorrelation,
    LognormalLength,
    TruncatedLength,
)

LAWS = [
    FixedLength(tokens=700),
    LognormalLength(mean=5000, sigma=0.9),
    GammaLength(mean=5000, shape=1.7),
    EmpiricalLength(samples=(10, 20, 400, 90, 35, 1200)),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_samples_have_the_mean_that_the_law_claims(law):
    normal = np.random.default_rng(5).standard_normal(400_000)
    lengths = law.length_tokens(normal)
    standard_error = lengths.std() / lengths.size**0.5
    bias_of_interpolation = 0.02 * law.mean_tokens() if law.kind == "empirical" else 0.0
    assert abs(lengths.mean() - law.mean_tokens()) <= 4.5 * standard_error + bias_of_interpolation


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_a_larger_variate_never_gives_a_shorter_answer(law):
    lengths = law.length_tokens(np.linspace(-6, 6, 500))
    assert np.all(np.diff(lengths) >= 0)
    assert np.all(np.isfinite(lengths))


def test_the_limit_cuts_and_the_cut_share_is_the_tail_probability():
    truncated = TruncatedLength(law=LognormalLength(mean=1000, sigma=1.0), limit_tokens=2000)
    normal = np.random.default_rng(1).standard_normal(200_000)
    lengths = truncated.length_tokens(normal)
    assert lengths.max() == 2000
    assert lengths.min() >= 1
    from scipy.stats import norm

    tail = norm.sf((np.log(2000.5 / 1000) + 0.5) / 1.0)
    error = (tail * (1 - tail) / normal.size) ** 0.5
    assert abs(truncated.is_clipped(normal).mean() - tail) < 4.5 * error


@given(st.floats(0, 1))
def test_group_correlation_is_what_was_asked_for(correlation):
    generator = np.random.default_rng(3)
    prompts, samples = 4000, 4
    shared = np.repeat(generator.standard_normal(prompts), samples)
    own = generator.standard_normal(prompts * samples)
    mixed = GroupCorrelation(within_group=correlation).mix(shared, own).reshape(prompts, samples)
    measured = np.corrcoef(mixed[:, 0], mixed[:, 1])[0, 1]
    assert measured == pytest.approx(correlation, abs=4.5 / prompts**0.5)
    assert mixed.std() == pytest.approx(1.0, abs=0.05)
