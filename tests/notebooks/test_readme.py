"""The README keeps its word: links lead somewhere, its scenario is valid, its table is current."""

import re
from pathlib import Path

import pytest

from simulator.specs.load import load_scenario
from tests.cli.command import rollcast

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^  (?P<label>\S+(?: \S+)*)  +(?P<mean>[\d,.]+)(?:\s.*)?$", re.MULTILINE)


def means(text):
    """First number of every row of the printed tables, by the row's label."""
    return {row["label"]: float(row["mean"].replace(",", "")) for row in ROW.finditer(text)}


def test_every_relative_link_leads_to_a_file():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    assert not [target for target in targets if not (ROOT / target).is_file()]


def test_the_scenario_of_the_tour_is_valid(tmp_path):
    (block,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "my-run.yaml"
    path.write_text(block, encoding="utf-8")
    assert load_scenario(str(path)).baseline


@pytest.mark.slow
def test_the_table_is_what_the_demo_prints():
    shown = means(README)
    printed = means(rollcast("run", "scenarios/qwen3-235b-sync-512.yaml").stdout)
    assert len(shown) >= 10
    # Last digits differ among processors and releases of numpy.
    assert {label: printed[label] for label in shown} == pytest.approx(shown, rel=0.01)
