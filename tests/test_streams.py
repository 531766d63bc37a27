"""Base variates depend on purpose, step, seed and replication, and on nothing else."""

import numpy as np

from simulator.streams import Purpose, Streams


def test_variates_do_not_depend_on_who_asks_first():
    forward, backward = Streams(3, 1), Streams(3, 1)
    first = [forward.normal(Purpose.RESPONSE_LENGTH_SAMPLE, step, 50) for step in (0, 1, 2)]
    last = [backward.normal(Purpose.RESPONSE_LENGTH_SAMPLE, step, 50) for step in (2, 1, 0)][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(first, last, strict=True))


def test_purposes_steps_seeds_and_replications_are_independent():
    base = Streams(3, 1).normal(Purpose.PROMPT_LENGTH, 0, 20_000)
    others = [
        Streams(3, 1).normal(Purpose.ACCEPTANCE_ROUNDS, 0, 20_000),
        Streams(3, 1).normal(Purpose.PROMPT_LENGTH, 1, 20_000),
        Streams(4, 1).normal(Purpose.PROMPT_LENGTH, 0, 20_000),
        Streams(3, 2).normal(Purpose.PROMPT_LENGTH, 0, 20_000),
    ]
    for other in others:
        assert abs(np.corrcoef(base, other)[0, 1]) < 4.5 / 20_000**0.5


def test_purpose_numbers_are_a_contract():
    assert [(purpose.name, purpose.value) for purpose in Purpose] == [
        ("PROMPT_LENGTH", 1),
        ("RESPONSE_LENGTH_PROMPT", 2),
        ("RESPONSE_LENGTH_SAMPLE", 3),
        ("ACCEPTANCE_REQUEST", 4),
        ("ACCEPTANCE_ROUNDS", 5),
    ]
