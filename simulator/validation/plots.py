"""Published against projected, one picture a source."""

from collections.abc import Sequence
from pathlib import Path

from simulator.validation.cases import Case

_COLOURS = {"fitted": "tab:blue", "validation": "tab:orange"}


def plot_sources(cases: Sequence[Case], folder: Path) -> list[Path]:
    """Write ``<source>.png`` for each source into ``folder``; returns the paths.

    One panel a metric, both axes logarithmic, with the line of equality and 20% to its sides.
    """
    names = list(dict.fromkeys(case.source for case in cases))
    return [_plot(name, [case for case in cases if case.source == name], folder) for name in names]


def _plot(source: str, cases: Sequence[Case], folder: Path) -> Path:
    from matplotlib.figure import Figure

    metrics = list(dict.fromkeys(case.metric for case in cases))
    figure = Figure(figsize=(4.5 * len(metrics), 4.2), layout="constrained")
    for panel, metric in zip(
        figure.subplots(1, len(metrics), squeeze=False)[0], metrics, strict=True
    ):
        chosen = [case for case in cases if case.metric == metric]
        values = [value for case in chosen for value in (case.published, case.projected)]
        ends = [0.8 * min(values), 1.25 * max(values)]
        for factor, style in ((1.0, "-"), (1.2, ":"), (1.0 / 1.2, ":")):
            panel.plot(ends, [factor * end for end in ends], style, color="grey", linewidth=0.8)
        for role, colour in _COLOURS.items():
            points = [case for case in chosen if case.role == role]
            panel.plot(
                [case.published for case in points],
                [case.projected for case in points],
                ".",
                color=colour,
                markersize=4,
                label=f"{role} ({len(points)})",
            )
        panel.set(
            xscale="log",
            yscale="log",
            xlim=ends,
            ylim=ends,
            xlabel=f"published {metric}",
            ylabel=f"projected {metric}",
            title=source,
        )
        panel.legend(frameon=False)
    path = folder / f"{source}.png"
    figure.savefig(path, dpi=130)
    return path
