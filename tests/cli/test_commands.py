"""Every verb through the real entry point: what goes to standard output, and what does not."""

import json

import pytest
from ruamel.yaml import YAML

from simulator.analysis.projection import project
from simulator.specs.catalog import model_names, profile_names, scenario_names
from simulator.specs.load import load_scenario
from tests.cli.command import rollcast
from tests.small_scenario import SMALL

VERBS = {"run", "models", "profiles", "scenarios", "show", "schema", "calibrate"}


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "small.yaml"
    YAML().dump(SMALL, path)
    return path


def stdout_of(*arguments, **environment):
    """Standard output of a run that succeeds and says nothing on standard error."""
    done = rollcast(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def only_json(text):
    """The one JSON value that a text is, refusing everything before and after it."""
    value, end = json.JSONDecoder().raw_decode(text)
    assert text[end:] == "\n"
    return value


def test_version_is_one_line():
    assert stdout_of("--version").removesuffix("\n").split(" ")[0] == "rollcast"
    assert stdout_of("--version").count("\n") == 1


def test_help_lists_every_verb():
    text = stdout_of("--help")
    listed = text.split("Commands:\n")[1].splitlines()
    assert {line.split()[0] for line in listed if line.startswith("  ")} >= VERBS


def test_no_arguments_show_the_help():
    done = rollcast()
    assert "Commands:" in done.stdout + done.stderr
    assert done.returncode in {0, 2}


def test_an_unknown_verb_ends_with_code_2():
    done = rollcast("runn")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "runn" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_explains_itself():
    text = stdout_of("run", "--help")
    for option in ("--set", "--seeds", "--steps", "--json", "--out", "--quiet"):
        assert option in text


def test_run_prints_one_json_object_the_same_in_every_process(small_file):
    printed = stdout_of("run", small_file, "--json", PYTHONHASHSEED="1")
    answer = only_json(printed)
    assert answer["scenario"] == answer["baseline"]["scenario"] == "small"
    assert answer == project(load_scenario(str(small_file))).to_json()


def test_shortcuts_and_overrides_reach_the_run_and_quiet_silences_warnings(small_file):
    arguments = ("--seeds", 1, "--steps", 1, "--set", "name=other", "--set", "baseline=null")
    answer = only_json(stdout_of("run", small_file, "--json", "--quiet", *arguments))
    assert (answer["scenario"], answer["seeds"], answer["baseline"]) == ("other", 1, None)
    assert len(answer["warnings"]) == 1


def test_run_writes_files_and_still_prints_only_json(small_file, tmp_path):
    out = tmp_path / "new" / "out"
    answer = only_json(stdout_of("run", small_file, "--json", "--steps", 2, "--out", out))
    assert json.loads((out / "result.json").read_text("utf-8")) == answer
    suffixes = sorted(path.suffix for path in out.iterdir())
    assert suffixes == [".csv"] * 6 + [".json"] + [".png"] * 3 + [".yaml"]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("models", model_names()),
        ("profiles", profile_names()),
        ("scenarios", scenario_names()),
    ],
)
def test_lists_name_everything_that_is_shipped(verb, expected):
    text = stdout_of(verb)
    assert expected
    for name in expected:
        assert f" {name} " in text


def test_show_prints_the_file_of_a_scenario_and_of_a_profile():
    scenario = YAML(typ="safe").load(stdout_of("show", "qwen3-235b-sync-512"))
    profile = YAML(typ="safe").load(stdout_of("show", "gb200"))
    assert scenario["cluster"] == {"gpus": 512, "hardware": "gb200"}
    assert profile["device"]["hbm_bytes_per_s"] == 8e12


def test_show_prints_what_a_models_config_says():
    model = only_json(stdout_of("show", "Qwen3-8B"))
    assert (model["name"], model["num_layers"]) == ("Qwen3-8B", 36)


def test_show_of_nothing_is_refused_in_one_line():
    done = rollcast("show", "nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: nothing is called 'nothing'")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def table(small_file):
    """A run of a single step into a pipe, by somebody whose terminal could show colours."""
    done = rollcast(
        *("run", small_file, "--seeds", 1, "--steps", 1),
        **{"NO_COLOR": "", "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "30"},
    )
    assert done.returncode == 0
    return done


def test_what_goes_into_a_pipe_has_no_control_characters(table):
    for text in (table.stdout, table.stderr, stdout_of("--help", NO_COLOR="")):
        assert text
        assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_warnings_and_nothing_else_go_to_standard_error(table):
    assert table.stderr.startswith("warning: 1 independent block of steps")
    assert table.stderr.count("\n") == 1


def test_a_table_names_phases_speedups_and_baseline(table):
    for words in (
        "small: steps 1, seeds 1",
        "weight sync",
        "training",
        "exposed generation",
        "speculation.method=none",
        "rollout speedup",
        "end-to-end speedup",
    ):
        assert words in table.stdout


def test_rows_of_a_table_stand_on_one_line_each_in_a_pipe(table):
    (row,) = [line.split() for line in table.stdout.splitlines() if "step [s]" in line]
    assert row[:2] == ["step", "[s]"]
    scenario_s, baseline_s = (float(cell) for cell in row[2:] if cell[-1].isdigit())
    assert 0 < scenario_s < baseline_s
