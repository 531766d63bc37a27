"""Pictures of a projection: where a step goes, how the batch drains, how long answers are.

Built with matplotlib's objects alone, so that nothing depends on a display or on other plots.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from simulator.analysis.projection import Projection
from simulator.results.statistics import PHASES

_SIZE_INCHES = (12.0, 7.0)
_COLOURS = ("#9aa5b1", "#c8b458", "#2f6f9f", "#8e6bb0", "#d98c4a", "#4f9d69")
_LABELS = {
    "prepare": "weight sync",
    "exposed_generation": "exposed generation",
    "logprob": "log-probabilities",
}
_BINS = 60


def phases_figure(projection: Projection) -> Figure:
    """Stacked bars of the phases of a step, the scenario above its baseline."""
    figure, axes = _canvas()
    arms = [("scenario", projection)]
    if projection.baseline is not None:
        arms.insert(0, ("baseline", projection.baseline))
    names = [name for name, _ in arms]
    left = np.zeros(len(arms))
    for phase, colour in zip(PHASES, _COLOURS, strict=True):
        seconds = np.asarray([arm.phases_s[phase].mean for _, arm in arms])
        label = _LABELS.get(phase, phase)
        axes.barh(names, seconds, left=left, color=colour, label=label, height=0.6)
        left += seconds
    for position, total in enumerate(left):
        axes.text(total, position, f" {total:.1f} s", va="center", fontsize=12)
    axes.set_xlim(0, 1.12 * float(left.max()))
    axes.set_xlabel("seconds of a step [s]")
    axes.set_title(f"{projection.scenario.name}: where a step goes")
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
    return figure


def running_figure(projection: Projection) -> Figure:
    """Decoding sequences of the whole pool over the first measured steps."""
    figure, axes = _canvas()
    arms = [("scenario", projection, _COLOURS[2])]
    if projection.baseline is not None:
        arms.append(("baseline", projection.baseline, _COLOURS[0]))
    for name, arm, colour in arms:
        table = arm.tables["batch"]
        shown = table[table["step"] <= table["step"].min() + _shown_steps(projection)]
        begin_s = float(shown["time_s"].min()) if len(shown) else 0.0
        axes.step(
            shown["time_s"] - begin_s, shown["running"], where="post", color=colour, label=name
        )
    axes.set_xlabel("time since the first measured step began [s]")
    axes.set_ylabel("sequences being decoded, all instances [1]")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{projection.scenario.name}: how the running batch drains")
    axes.legend(frameon=False)
    return figure


def lengths_figure(projection: Projection) -> Figure:
    """Histogram of response lengths, with the limit."""
    figure, axes = _canvas()
    limit = projection.scenario.workload.max_response_tokens
    lengths = projection.tables["rollouts"]["response_tokens"].to_numpy()
    axes.hist(lengths, bins=_BINS, color=_COLOURS[2])
    axes.axvline(limit, color=_COLOURS[4], label=f"limit {limit:,} tokens")
    axes.axvline(
        float(lengths.mean()), color=_COLOURS[5], label=f"mean {lengths.mean():,.0f} tokens"
    )
    axes.set_yscale("log")
    axes.set_xlabel("response length [tokens]")
    axes.set_ylabel("rollouts [1]")
    axes.set_title(f"{projection.scenario.name}: how long responses are")
    axes.legend(frameon=False)
    return figure


def _shown_steps(projection: Projection) -> int:
    """Further steps to show: none of a synchronous run, as many as overlap otherwise [1]."""
    return projection.scenario.pipeline.max_policy_lag * 2


def _canvas() -> tuple[Figure, Axes]:
    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
