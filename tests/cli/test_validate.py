"""``rollcast validate`` and ``rollcast calibrate --software`` as a user runs them."""

import json

from tests.cli.command import rollcast


def test_a_table_with_a_row_for_each_role():
    done = rollcast("validate", "verify")
    assert done.returncode == 0, done.stderr
    assert "round_s" in done.stdout
    assert "fitted" in done.stdout
    assert "validation" in done.stdout


def test_json_is_a_list_of_cases_and_plots_are_written(tmp_path):
    done = rollcast("validate", "verify", "--json", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)
    keys = {"source", "case", "metric", "published", "projected", "relative_error", "role"}
    assert all(keys <= set(case) for case in cases)
    assert {case["role"] for case in cases} == {"fitted", "validation"}
    assert (tmp_path / "plots" / "verify.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_source_is_one_line_and_exit_code_2():
    done = rollcast("validate", "nope")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "serving" in done.stderr


def test_a_folder_that_is_a_file_is_one_line_and_exit_code_2(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    done = rollcast("validate", "verify", "--plots", place)
    assert done.returncode == 2
    assert "--plots" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_calibrate_wants_a_gpu_or_software():
    for arguments in ((), ("--gpu", "gb200", "--software"), ("--software", "--output", "x")):
        done = rollcast("calibrate", *arguments)
        assert done.returncode == 2
        assert "--software" in done.stderr
        assert len(done.stderr.splitlines()) == 1
