"""Measured kernel tables, read as they are: of ``aiconfigurator-core``, or a user's own CSV.

Only columns and units are touched: every table leaves with ``seconds``. Which table is trusted for
what, and which rows are traps, is told in :mod:`simulator.calibration.choices`.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from simulator.errors import CalibrationError
from simulator.units import MICRO, MILLI

if TYPE_CHECKING:
    import pandas as pd

PACKAGE = "aiconfigurator-core"
OWN_SUFFIX = ".csv"

_ATTENTION = ("kv_cache_dtype", "batch_size", "num_heads")
_GROUPED = (*_ATTENTION, "num_key_value_heads", "head_dim")
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "gemm": ("gemm_dtype", "m", "n", "k"),
        "moe": (
            "moe_dtype",
            "distribution",
            "num_tokens",
            "hidden_size",
            "inter_size",
            "topk",
            "num_experts",
            "moe_tp_size",
            "moe_ep_size",
        ),
        "prefill_attention": (*_GROUPED, "isl"),
        "decode_attention": (*_GROUPED, "step"),
        "latent_prefill_attention": (*_ATTENTION, "isl"),
        "latent_decode_attention": (*_ATTENTION, "step"),
        "all_reduce": ("num_gpus", "message_size"),
        "expert_exchange": (
            "comm_backend",
            "ep_size",
            "num_tokens",
            "hidden_size",
            "topk",
            "num_experts",
            "transmit_us",
        ),
    }
)
"""Columns that a table of each operator must have beside ``latency``. Times are in milliseconds,
but microseconds beside a ``transmit_us``; all-reduced messages are counted in 16-bit elements.
"""
_WORDS = ("gemm_dtype", "moe_dtype", "distribution", "kv_cache_dtype", "comm_backend")
_DEFAULTS: Mapping[str, int | str] = MappingProxyType(
    {"isl": 1, "step": 0, "window_size": 0, "backend": "graph"}
)
"""What a user's own table may leave out: it measured prompts without a prefix, one new token over
a cache, no windows, and under CUDA graphs."""


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
        Family, back end, version and file, such as ``gemm/vllm/0.24.0/gemm_perf``; or the path of a
        CSV file, whatever the GPU.

    Raises
    ------
    CalibrationError
        If the package or the table is missing.
    """
    import pandas as pd

    if table.endswith(OWN_SUFFIX):
        rows = _own_rows(Path(table))
    else:
        path = tables_root() / gpu / f"{table}.parquet"
        if not path.is_file():
            raise CalibrationError(f"{PACKAGE} has no table {table} for {gpu}")
        rows = pd.read_parquet(path)
    unit = MICRO if "transmit_us" in rows.columns else MILLI
    return rows.assign(seconds=rows["latency"] * unit)


def check_own_table(operator: str, path: Path) -> None:
    """Refuse a user's own table that cannot be fitted.

    Raises
    ------
    CalibrationError
        If the file cannot be read, or lacks columns, rows or sensible numbers.
    """
    import pandas as pd

    if path.suffix != OWN_SUFFIX:
        raise CalibrationError(f"{path}: a table of one's own is a {OWN_SUFFIX} file")
    try:
        rows = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise CalibrationError(f"{path}: cannot be read as CSV: {error}") from error
    needed = (*COLUMNS[operator], "latency")
    missing = [name for name in needed if name not in rows.columns]
    if missing:
        raise CalibrationError(
            f"{path}: {operator} lacks the columns {', '.join(missing)}; it needs "
            f"{', '.join(needed)}"
        )
    if rows.empty:
        raise CalibrationError(f"{path}: has no rows")
    for name in needed:
        _check_column(path, rows[name], is_word=name in _WORDS, may_be_zero=name == "step")


def _check_column(path: Path, column: "pd.Series", *, is_word: bool, may_be_zero: bool) -> None:
    import numpy as np
    import pandas as pd

    if is_word:
        bad = column.isna()
    else:
        numbers = pd.to_numeric(column, errors="coerce")
        bad = ~(np.isfinite(numbers) & ((numbers >= 0) if may_be_zero else (numbers > 0)))
    if bad.any():
        # The header is line 1 of the file.
        line = int(np.flatnonzero(bad.to_numpy())[0]) + 2
        allowed = "a name" if is_word else f"a number {'not below' if may_be_zero else 'above'} 0"
        raise CalibrationError(
            f"{path}:{line}: {column.name} is {column.iloc[line - 2]!s}, but must be {allowed}"
        )


def _own_rows(path: Path) -> "pd.DataFrame":
    import pandas as pd

    rows = pd.read_csv(path)
    defaults = {**_DEFAULTS, "kernel_source": path.stem}
    return rows.assign(**{name: value for name, value in defaults.items() if name not in rows})
