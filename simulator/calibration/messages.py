"""Fits of messages between GPUs: all-reduce by ranks, and dispatch and combine of experts."""

from typing import TYPE_CHECKING

import numpy as np

from simulator.calibration.choices import MessageChoice
from simulator.calibration.fitting import FloatArray, fit_coefficients, provenance
from simulator.calibration.products import UNFITTED
from simulator.calibration.tables import read_table, source_name
from simulator.costs.collectives import all_reduce_seconds, exchange_seconds
from simulator.specs.kernels import CollectiveFit, ExchangeFit, Provenance

if TYPE_CHECKING:
    import pandas as pd

_ELEMENT_BYTES = 2.0
_NVFP4_BYTES = 0.5625
_REDUCE_STARTS = ((5e-6, 4e11, 1e-10), (5e-6, 2e11, 1e-8))
_EXCHANGE_STARTS = ((3e-5, 5e-6, 5e11, 1.0, 1e-8), (1e-4, 1e-6, 3e11, 3.0, 1e-8))
_ONE_SIDED_ROWS = "NVLinkOneSided"


def all_reduce_rows(choice: MessageChoice) -> "pd.DataFrame":
    """Measured all-reduces under CUDA graphs, with their size in bytes."""
    rows = read_table(choice.gpu, choice.table)
    rows = rows[rows["backend"].str.contains("graph", regex=False)]
    if choice.ranks:
        rows = rows[rows["num_gpus"].isin(choice.ranks)]
    return rows.assign(num_bytes=_ELEMENT_BYTES * rows["message_size"]).reset_index(drop=True)


def fit_all_reduce(rows: "pd.DataFrame", table: str, note: str = "") -> tuple[CollectiveFit, ...]:
    """Fit each number of ranks by itself, held out by message size."""

    def build(ranks: int, c: FloatArray, origin: Provenance) -> CollectiveFit:
        return CollectiveFit(
            ranks=ranks, launch_s=c[0], bytes_per_s=c[1], root_s=c[2], provenance=origin
        )

    fits = []
    for ranks in sorted(set(rows["num_gpus"].tolist())):
        chosen = rows[rows["num_gpus"] == ranks].reset_index(drop=True)

        def model(c: FloatArray, some: "pd.DataFrame", ranks: int = ranks) -> FloatArray:
            return all_reduce_seconds(build(ranks, c, UNFITTED), some["num_bytes"].to_numpy())

        result = fit_coefficients(chosen, ("num_bytes",), model, _REDUCE_STARTS)
        origin = provenance(
            chosen,
            result,
            source=source_name(),
            table=table,
            kernel=", ".join(sorted(set(chosen["kernel_source"]))),
            ranges=("num_bytes",),
            note=note,
        )
        fits.append(build(ranks, result.coefficients, origin))
    return tuple(fits)


def exchange_rows(choice: MessageChoice) -> "pd.DataFrame":
    """Dispatch and combine together: ``ranks``, ``moved_bytes`` and ``seconds``.

    Where several back ends were measured for a size, an engine would run the fastest.
    """
    rows = read_table(choice.gpu, choice.table)
    if "ep_size" in rows:
        return _deep_ep_rows(rows)
    chosen = rows[rows["kernel_source"] == _ONE_SIDED_ROWS]
    keys = ["moe_ep_size", "num_tokens", "hidden_size", "topk"]
    total: pd.DataFrame = chosen.groupby(keys)["seconds"].sum().reset_index()
    copies = np.minimum(total["topk"], total["moe_ep_size"] - 1)
    values = total["num_tokens"] * copies * total["hidden_size"]
    total["ranks"] = total["moe_ep_size"]
    total["moved_bytes"] = values * (_NVFP4_BYTES + _ELEMENT_BYTES)
    total["kernel_source"] = _ONE_SIDED_ROWS
    return total


def _deep_ep_rows(rows: "pd.DataFrame") -> "pd.DataFrame":
    chosen = rows[rows["comm_backend"].isin(["deepep_ll", "deepep_ht"])]
    keys = ["comm_backend", "ep_size", "num_tokens", "hidden_size", "topk", "num_experts"]
    both = chosen.groupby(keys)["seconds"].sum().reset_index()
    total: pd.DataFrame = both.groupby(keys[1:])["seconds"].min().reset_index()
    copies = np.minimum(total["topk"], total["ep_size"] - 1)
    values = total["num_tokens"] * copies * total["hidden_size"]
    total["ranks"] = total["ep_size"]
    total["moved_bytes"] = 2.0 * _ELEMENT_BYTES * values
    total["kernel_source"] = "deepep_ll, deepep_ht"
    return total


def fit_exchange(rows: "pd.DataFrame", table: str) -> ExchangeFit:
    """Fit dispatch and combine, held out by ranks and size."""
    has_ranks = len(set(rows["ranks"])) > 1

    def build(c: FloatArray, origin: Provenance) -> ExchangeFit:
        return ExchangeFit(
            launch_s=c[0],
            rank_s=c[1] if has_ranks else 0.0,
            bytes_per_s=c[2],
            norm=1.0 + min(c[3], 20.0),
            root_s=c[4],
            provenance=origin,
        )

    def model(c: FloatArray, chosen: "pd.DataFrame") -> FloatArray:
        return exchange_seconds(
            build(c, UNFITTED), chosen["moved_bytes"].to_numpy(), chosen["ranks"].to_numpy()
        )

    result = fit_coefficients(rows, ("ranks", "num_tokens"), model, _EXCHANGE_STARTS)
    origin = provenance(
        rows,
        result,
        source=source_name(),
        table=table,
        kernel=", ".join(sorted(set(rows["kernel_source"]))),
        ranges=("ranks", "moved_bytes"),
    )
    return build(result.coefficients, origin)
