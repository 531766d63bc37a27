"""A seed decides every byte of an answer, and nothing but the seed does."""

import json

import pytest

from simulator.analysis.projection import project
from tests.small_scenario import small

LAGGED = {"placement": "disaggregated", "max_policy_lag": 2}


def answer(**changes):
    return project(small(**changes)).to_json()


def as_bytes(**changes):
    return json.dumps(answer(**changes), allow_nan=False).encode()


@pytest.mark.parametrize("pipeline", [{}, LAGGED], ids=["synchronous", "asynchronous"])
def test_a_seed_decides_every_byte(pipeline):
    first = as_bytes(pipeline=pipeline, steps=2)
    assert as_bytes(pipeline=pipeline, steps=2) == first
    assert as_bytes(pipeline=pipeline, steps=2, seed=1) != first


def test_a_replication_does_not_know_how_many_there_are():
    one, three = (project(small(seeds=seeds, baseline=None)).tables for seeds in (1, 3))
    for name in ("steps", "rollouts"):
        of_three = three[name][three[name]["seed"] == 0].reset_index(drop=True)
        assert one[name].equals(of_three)
    seeds = three["rollouts"].groupby("seed")["response_tokens"].sum()
    assert seeds.nunique() == 3


def test_no_speculation_is_plain_decoding_bit_for_bit():
    plain = answer(speculation=..., baseline=None)
    for speculation in (
        {"method": "none"},
        {"method": "none", "draft_length": 5, "acceptance_length": 4.0},
        {"method": "eagle3", "draft_length": 0, "acceptance_length": 1.0},
        {"method": "ngram", "draft_length": 0},
        {"method": "mtp", "draft_length": 0},
    ):
        assert answer(speculation=speculation, baseline=None) == plain
