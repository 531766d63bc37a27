"""Cases: their error, their interval, their role, and how they are summed up."""

import json

import pytest

from simulator.errors import ScenarioError
from simulator.validation import SOURCES, Case, validation_cases
from simulator.validation.plots import plot_sources
from simulator.validation.summary import summaries


def case(projected, role="validation", metric="tpot_s", source="here", sigma=0.1):
    return Case(source, "one", metric, 1.0, projected, sigma, role)


def test_the_interval_is_that_of_a_log_normal_law():
    assert case(1.21).is_inside
    assert not case(1.22).is_inside
    assert case(1.0 / 1.21).is_inside
    assert not case(1.0 / 1.22).is_inside


def test_a_case_says_everything_in_json():
    written = json.loads(json.dumps(case(1.5).to_json()))
    assert written["relative_error"] == pytest.approx(0.5)
    assert written["published"] == 1.0
    assert {"source", "case", "metric", "projected", "role"} <= set(written)


def test_a_summary_never_mixes_roles_metrics_or_sources():
    cases = [
        case(1.1),
        case(0.7),
        case(2.0),
        case(1.5, role="fitted"),
        case(1.2, metric="round_s"),
        case(1.3, source="there"),
    ]
    found = {(row.source, row.metric, row.role): row for row in summaries(cases)}
    assert len(found) == 4
    row = found["here", "tpot_s", "validation"]
    assert row.cases == 3
    assert row.median_error == pytest.approx(0.3)
    assert row.bias == pytest.approx(0.1)
    assert row.p90_error == pytest.approx(0.86)
    assert row.inside_share == pytest.approx(1 / 3)


def test_an_unknown_source_is_refused_with_the_known_ones():
    with pytest.raises(ScenarioError, match=r"nope.*serving"):
        validation_cases(["nope"])
    assert "verify" in SOURCES


def test_a_picture_a_source(tmp_path):
    paths = plot_sources([case(1.1), case(1.2, metric="b"), case(0.9, source="there")], tmp_path)
    assert [path.name for path in paths] == ["here.png", "there.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
