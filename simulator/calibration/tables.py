"""Measured kernel tables of the package ``aiconfigurator-core``, read as they are.

Only columns and units are touched: every table leaves with ``seconds``. Which table is trusted for
what, and which rows are traps, is told in :mod:`simulator.calibration.choices`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.errors import CalibrationError
from simulator.units import MICRO, MILLI

if TYPE_CHECKING:
    import pandas as pd

PACKAGE = "aiconfigurator-core"


def tables_root() -> Path:
    """Folder of the installed tables.

    Raises
    ------
    CalibrationError
        If the package is not installed.
    """
    spec = find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        raise CalibrationError(
            f"calibrating needs the measured tables of {PACKAGE}; install the extra: "
            "pip install 'rollcast[calibrate]'"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "systems" / "data"


def source_name() -> str:
    """Package and version of the tables, as profiles name their source.

    Rows that a user brings, without the package, get no version.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:
        return PACKAGE


def read_table(gpu: str, table: str) -> "pd.DataFrame":
    """One table of one GPU with a column ``seconds``.

    Parameters
    ----------
    gpu
        Folder of the GPU, such as ``h100_sxm``.
    table
        Family, back end, version and file, such as ``gemm/vllm/0.24.0/gemm_perf``.

    Raises
    ------
    CalibrationError
        If the package or the table is missing.
    """
    import pandas as pd

    path = tables_root() / gpu / f"{table}.parquet"
    if not path.is_file():
        raise CalibrationError(f"{PACKAGE} has no table {table} for {gpu}")
    rows = pd.read_parquet(path)
    if "transmit_us" in rows.columns:
        return rows.assign(seconds=rows["latency"] * MICRO)
    return rows.assign(seconds=rows["latency"] * MILLI)
