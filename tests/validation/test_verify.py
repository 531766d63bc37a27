"""Verify passes and speculative rounds: which rows count, and how well they are met."""

import pandas as pd
import pytest

from simulator.specs.catalog import profile_names
from simulator.validation import verify
from simulator.validation.cases import published_rows
from simulator.validation.summary import summaries


def test_a_round_is_the_time_of_all_tokens_it_emits():
    rows = published_rows("verify", "rounds.csv").set_index("id")
    assert verify.measured_round_s(rows.loc["S01"]) == pytest.approx(4.32e-3 * 2.36)
    # The source's own summary of these rows: 8.35 + 1.02 k ms.
    for name, draft_length in (("S01", 2), ("S04", 5), ("S06", 7)):
        expected = (8.35 + 1.02 * draft_length) * 1e-3
        assert verify.measured_round_s(rows.loc[name]) == pytest.approx(expected, rel=0.03)


def test_speculative_rounds_of_vllm_are_met():
    rounds = [case for case in verify.verify_cases() if case.metric == verify.ROUND_METRIC]
    fitted = [case for case in rounds if case.role == "fitted"]
    assert len(fitted) == 6
    assert max(abs(case.relative_error) for case in fitted) < 0.05
    plain = [case for case in rounds if case.role == "validation"]
    assert [case.published for case in plain] == [pytest.approx(7.07e-3)]
    assert abs(plain[0].relative_error) < 0.15


def test_rows_whose_prompts_share_a_cache_are_left_out(monkeypatch):
    """The rule looks at batch and context, never at the error."""
    row = {
        "model": "Llama-3.1-8B",
        "gpu": "h100_sxm",
        "precision": "bf16",
        "query_tokens": 4,
        "forward_ms": 17.6,
    }
    shapes = [(64, 4096), (32, 2048), (16, 4096), (64, 1024)]
    rows = pd.DataFrame(
        [{**row, "sequences": batch, "context_tokens": context} for batch, context in shapes]
    )
    rounds = published_rows("verify", "rounds.csv")
    monkeypatch.setattr(
        verify, "published_rows", lambda _, file: rows if file == "forward.csv" else rounds
    )
    kept = [case.case for case in verify.verify_cases() if case.metric == verify.FORWARD_METRIC]
    assert [name.split(", ")[2] for name in kept] == [
        "16 sequences of 4096 tokens",
        "64 sequences of 1024 tokens",
    ]


@pytest.mark.skipif("a100_sxm" not in profile_names(), reason="no profile of the A100 yet")
def test_verify_passes_on_a100_are_met():
    cases = [case for case in verify.verify_cases() if case.metric == verify.FORWARD_METRIC]
    (summary,) = summaries(cases)
    assert summary.cases == 23
    assert summary.role == "validation"
    assert summary.median_error < 0.10
    assert summary.p90_error < 0.20
