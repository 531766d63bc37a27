"""A projection as files: tables, plots, the JSON, and the scenario as it was resolved.

Every file is written beside its place and moved there when it is complete, so that an interrupt
leaves whole files or none.
"""

import io
import json
from pathlib import Path

from ruamel.yaml import YAML

from simulator.analysis.plots import lengths_figure, phases_figure, running_figure
from simulator.analysis.projection import Projection
from simulator.errors import ScenarioError

_DOTS_PER_INCH = 100


def prepare_folder(folder: Path, option: str = "--out") -> None:
    """Make the folder, before any work is done for it.

    Raises
    ------
    ScenarioError
        If it is a file, or cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".rollcast-probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ScenarioError(
            f"{option} {folder}: cannot be written to ({error.strerror}); name a folder"
        ) from error


def write_outputs(projection: Projection, folder: Path) -> list[Path]:
    """Write tables as CSV, plots as PNG, result and scenario; returns what was written."""
    written = []
    for name, arm in (("scenario", projection), ("baseline", projection.baseline)):
        if arm is None:
            continue
        for table, frame in arm.tables.items():
            text = frame.to_csv(index=False, float_format="%.9g")
            written.append(_write(folder / f"{name}-{table}.csv", text.encode()))
    for name, figure in (
        ("phases", phases_figure(projection)),
        ("running", running_figure(projection)),
        ("lengths", lengths_figure(projection)),
    ):
        image = io.BytesIO()
        figure.savefig(image, format="png", dpi=_DOTS_PER_INCH)
        written.append(_write(folder / f"{name}.png", image.getvalue()))
    result = json.dumps(projection.to_json(), indent=2, allow_nan=False) + "\n"
    written.append(_write(folder / "result.json", result.encode()))
    resolved = io.StringIO()
    YAML().dump(projection.scenario.model_dump(mode="json"), resolved)
    written.append(_write(folder / "scenario.yaml", resolved.getvalue().encode()))
    return written


def _write(path: Path, content: bytes) -> Path:
    draft = path.with_name(f".{path.name}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
