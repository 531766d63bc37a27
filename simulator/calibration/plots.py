"""Predicted against measured times as pictures, one file for each class of kernel."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from simulator.calibration.attention import (
    grouped_rows,
    latent_rows,
    predicted_decode,
    predicted_prefill,
)
from simulator.calibration.choices import CHOICES, GpuChoices
from simulator.calibration.fitting import FloatArray
from simulator.calibration.messages import all_reduce_rows, exchange_rows
from simulator.calibration.products import gemm_rows, moe_rows
from simulator.calibration.tables import COLUMNS
from simulator.costs.collectives import all_reduce_s, exchange_seconds
from simulator.costs.experts import moe_s
from simulator.costs.operators import gemm_s
from simulator.errors import CalibrationError
from simulator.specs.hardware import HardwareProfile
from simulator.units import MICRO

if TYPE_CHECKING:
    import pandas as pd

Panels = Mapping[str, tuple[FloatArray, FloatArray]]
"""Measured and predicted seconds, by what the panel is called."""

_MOE_COLUMNS = tuple(name for name in COLUMNS["moe"] if name not in {"moe_dtype", "distribution"})
_MOST_POINTS = 5_000
_PANEL_INCHES = 3.2


def write_plots(profile: HardwareProfile, folder: Path) -> list[Path]:
    """Draw every class of kernel of a fitted profile, and say which files were written.

    Raises
    ------
    CalibrationError
        If the profile has no tables of its own, or they are not installed.
    """
    choices = CHOICES.get(profile.name)
    if choices is None:
        raise CalibrationError(
            f"{profile.name} is scaled from another profile, so there is nothing measured to plot"
        )
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, panels in _classes(profile, choices):
        path = folder / f"{profile.name}-{kind}.png"
        _draw(f"{profile.name}: {kind.replace('_', ' ')}", panels, path)
        paths.append(path)
    return paths


def _classes(profile: HardwareProfile, choices: GpuChoices) -> Iterator[tuple[str, Panels]]:
    kernels, device, gpu = profile.kernels, profile.device, choices.gpu
    yield (
        "gemm",
        {
            name: _against(
                rows := gemm_rows(gpu, choice),
                gemm_s(profile, name, *_columns(rows, "m", "n", "k")),
            )
            for name, choice in choices.gemm.items()
        },
    )
    yield (
        "moe",
        {
            name: _against(
                rows := moe_rows(gpu, choice), moe_s(profile, name, *_columns(rows, *_MOE_COLUMNS))
            )
            for name, choice in choices.moe.items()
        },
    )
    attention, latent = choices.attention, choices.latent
    yield (
        "prefill_attention",
        {
            f"{kv}, heads of {fit.head_dim:.0f}": _against(
                rows := grouped_rows(
                    gpu, attention.prefill, kv, int(fit.head_dim), kernel=attention.kernel
                ),
                predicted_prefill(fit, kv, device, rows),
            )
            for kv, main in kernels.prefill_attention.items()
            for fit in (main, *main.other_widths)
        },
    )
    yield (
        "decode_attention",
        {
            f"{kv}, heads of {fit.head_dim:.0f}": _against(
                rows := grouped_rows(
                    gpu,
                    attention.decode,
                    kv,
                    int(fit.head_dim),
                    kernel=attention.kernel,
                    least_group=attention.least_group,
                ),
                predicted_decode(fit, kv, device, rows),
            )
            for kv, main in kernels.decode_attention.items()
            for fit in (main, *main.other_widths)
        },
    )
    yield (
        "latent_attention",
        {
            **{
                f"{kv}, prefill": _against(
                    rows := latent_rows(gpu, latent.prefill, kv),
                    predicted_prefill(prefill, kv, device, rows),
                )
                for kv, prefill in kernels.latent_prefill_attention.items()
            },
            **{
                f"{kv}, decode": _against(
                    rows := latent_rows(gpu, latent.decode, kv),
                    predicted_decode(decode, kv, device, rows),
                )
                for kv, decode in kernels.latent_decode_attention.items()
            },
        },
    )
    yield "messages", _messages(profile, choices)


def _messages(profile: HardwareProfile, choices: GpuChoices) -> Panels:
    panels = {}
    for choice in choices.all_reduce:
        rows = all_reduce_rows(choice)
        for ranks in sorted(set(rows["num_gpus"].tolist())):
            some = rows[rows["num_gpus"] == ranks]
            panels[f"all-reduce, {ranks} ranks"] = _against(
                some, all_reduce_s(profile, some["num_bytes"].to_numpy(), ranks)
            )
    rows = exchange_rows(choices.exchange)
    panels["expert exchange"] = _against(
        rows,
        exchange_seconds(profile.kernels.expert_exchange, *_columns(rows, "moved_bytes", "ranks")),
    )
    return panels


def _columns(rows: "pd.DataFrame", *names: str) -> list[FloatArray]:
    return [rows[name].to_numpy(dtype=np.float64) for name in names]


def _against(rows: "pd.DataFrame", predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
    # Evenly spaced rows: a picture needs no more, and the same ones each time.
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_POINTS)).astype(np.int64))
    return rows["seconds"].to_numpy(dtype=np.float64)[chosen], predicted[chosen]


def _draw(title: str, panels: Panels, path: Path) -> None:
    from matplotlib.figure import Figure

    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(columns * _PANEL_INCHES, lines * _PANEL_INCHES), layout="constrained")
    axes = np.ravel(figure.subplots(lines, columns, squeeze=False))
    figure.suptitle(title)
    for axis, (name, (measured, predicted)) in zip(axes, panels.items(), strict=False):
        ends = np.array([measured.min(), measured.max()]) / MICRO
        axis.loglog(measured / MICRO, predicted / MICRO, ".", markersize=2, alpha=0.3)
        axis.loglog(ends, ends, "k-", linewidth=1)
        error = np.abs(predicted / measured - 1.0)
        axis.set_title(
            f"{name}: {100 * np.median(error):.1f} / {100 * np.quantile(error, 0.9):.1f} %",
            fontsize="small",
        )
        axis.set_xlabel("measured [µs]")
        axis.set_ylabel("fitted [µs]")
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    figure.savefig(path, dpi=120)
