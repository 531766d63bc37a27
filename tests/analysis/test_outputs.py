"""A projection as files: what is written, that it is whole, and that it can be run again."""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from simulator.analysis.outputs import prepare_folder, write_outputs
from simulator.analysis.projection import project
from simulator.errors import ScenarioError
from simulator.specs.load import load_scenario
from tests.small_scenario import small

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_END = b"IEND\xaeB`\x82"

TABLES = ("steps", "rollouts", "batch")
FIGURES = {"phases.png", "running.png", "lengths.png"}
OTHERS = {"result.json", "scenario.yaml"}


@pytest.fixture(scope="module")
def projection():
    return project(small(steps=2, seeds=1))


@pytest.fixture(scope="module")
def folder(projection, tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs")
    write_outputs(projection, path)
    return path


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_both_arms_have_tables_and_nothing_is_left_over(folder):
    tables = {f"{arm}-{table}.csv" for arm in ("scenario", "baseline") for table in TABLES}
    assert names(folder) == tables | FIGURES | OTHERS


def test_what_was_written_is_told(projection, tmp_path):
    written = write_outputs(projection, tmp_path)
    assert {path.name for path in written} == names(tmp_path)
    assert all(path.parent == tmp_path for path in written)


def test_without_a_baseline_there_are_no_tables_of_one(projection, tmp_path):
    write_outputs(projection.baseline, tmp_path)
    assert names(tmp_path) == {f"scenario-{table}.csv" for table in TABLES} | FIGURES | OTHERS


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_read_back_to_nine_digits(projection, folder, table):
    for name, arm in (("scenario", projection), ("baseline", projection.baseline)):
        read = pd.read_csv(folder / f"{name}-{table}.csv")
        pd.testing.assert_frame_equal(read, arm.tables[table], check_dtype=False, rtol=1e-8)
        assert len(read) > 1


@pytest.mark.parametrize("figure", sorted(FIGURES))
def test_figures_are_whole_pngs_of_their_size(folder, figure):
    content = (folder / figure).read_bytes()
    assert content.startswith(PNG_SIGNATURE)
    assert content.endswith(PNG_END)
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    assert (width, height) == (1200, 700)


def test_the_result_is_the_json_of_the_projection(projection, folder):
    assert json.loads((folder / "result.json").read_text("utf-8")) == projection.to_json()


def test_the_written_scenario_gives_the_same_answer(projection, folder):
    reloaded = load_scenario(str(folder / "scenario.yaml"))
    assert reloaded == projection.scenario
    assert project(reloaded).to_json() == projection.to_json()


@pytest.mark.parametrize("name", ["qwen3-235b-async-2048", "qwen3-8b-rl-zero"])
def test_shipped_scenarios_survive_being_written(name, projection, tmp_path):
    shipped = load_scenario(name, ["workload.response_length={kind: empirical, samples: [9, 80]}"])
    write_outputs(replace(projection, scenario=shipped), tmp_path)
    assert load_scenario(str(tmp_path / "scenario.yaml")) == shipped


@pytest.mark.parametrize("method", ["write_bytes", "replace"])
def test_a_failure_leaves_whole_files_or_none(projection, tmp_path, monkeypatch, method):
    """The fifth file is cut in its middle, or written and never moved to its place."""
    whole, calls = getattr(Path, method), []

    def fail_at_the_fifth(path, argument):
        calls.append(path)
        if len(calls) < 5:
            return whole(path, argument)
        if method == "write_bytes":
            whole(path, argument[: len(argument) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, method, fail_at_the_fifth)
        with pytest.raises(OSError, match="No space left"):
            write_outputs(projection, tmp_path)
    complete = tmp_path / "complete"
    complete.mkdir()
    kept = names(tmp_path) - {"complete"}
    write_outputs(projection, complete)
    assert len(kept) == 4
    for name in kept:
        assert (tmp_path / name).read_bytes() == (complete / name).read_bytes()


def test_an_interrupt_leaves_what_was_there_before(projection, tmp_path, monkeypatch):
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")

    def interrupt(path, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_outputs(projection, tmp_path)
    assert names(tmp_path) == {"result.json"}
    assert (tmp_path / "result.json").read_text("utf-8") == "{}"


def test_a_folder_is_made_with_those_above_it_and_left_empty(tmp_path):
    prepare_folder(tmp_path / "a" / "b")
    prepare_folder(tmp_path / "a" / "b")
    assert names(tmp_path / "a") == {"b"}
    assert names(tmp_path / "a" / "b") == set()


def test_a_file_in_the_way_of_a_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    for path in (tmp_path / "taken", tmp_path / "taken" / "inside"):
        with pytest.raises(ScenarioError, match=r"--out .*taken.*name a folder"):
            prepare_folder(path)
