"""Every notebook runs from top to bottom, has a title, and draws something."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CELL_TIMEOUT_S = 300


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def executed(request):
    notebook = nbformat.read(request.param, as_version=4)
    # The kernel starts in the checkout, so the package need not be installed.
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_S, resources={"metadata": {"path": str(ROOT)}}
    )
    return client.execute()


def test_it_runs_without_an_error_and_draws_a_figure(executed):
    outputs = [output for cell in executed.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_it_begins_with_a_title(executed):
    first = executed.cells[0]
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    assert not [cell.id for cell in notebook.cells if cell.get("outputs")]
