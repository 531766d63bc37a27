"""Errors of published cases as tables."""

import pytest

from simulator.validation.cases import Case
from simulator.validation.tables import case_table, error_table, main


def case(role, published, projected, subject="A"):
    return Case("source", f"{subject} row", "metric", published, projected, 0.1, role)


def test_errors_are_grouped_by_role_and_subject():
    cases = [
        case("fitted", 10.0, 11.0),
        case("validation", 10.0, 8.0),
        case("validation", 10.0, 10.0, "B"),
    ]
    lines = error_table(cases).splitlines()
    assert "| source | fitted | A | 1 | 10.0% | 10.0% | +10.0% | 100% |" in lines
    assert "| source | validation | A | 1 | 20.0% | 20.0% | -20.0% | 0% |" in lines
    assert "| source | validation | all | 2 | 10.0% | 18.0% | -10.0% | 50% |" in lines


def test_every_case_is_a_line():
    assert case_table([case("fitted", 1000.0, 900.0)]).splitlines()[-1] == (
        "| A row | fitted | 1,000 | 900 | -10% |"
    )


@pytest.mark.parametrize("arguments", [["torchtitan"], ["torchtitan", "--cases"]])
def test_the_command_prints_a_source(arguments, capsys):
    assert main(arguments) == 0
    assert "torchtitan" in capsys.readouterr().out


def test_the_command_refuses_an_unknown_source(capsys):
    assert main(["nowhere"]) == 2
    assert "known are" in capsys.readouterr().err
