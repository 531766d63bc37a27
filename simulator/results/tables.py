"""Tidy tables of a run: the one list of columns, with units in their names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from simulator.results.recorder import Recorder
from simulator.results.statistics import phase_seconds, running_over_time, step_seconds

if TYPE_CHECKING:
    import pandas as pd

IntArray = npt.NDArray[np.int64]
_LEVELS = 2_000


class DrawnRollouts(Protocol):
    """What the tables need of a drawn batch."""

    @property
    def step(self) -> int:
        """Step that trains the batch [1]."""

    @property
    def prompt_tokens(self) -> IntArray:
        """Prompt length of each rollout [tokens]."""

    @property
    def response_tokens(self) -> IntArray:
        """Response length of each rollout [tokens]."""

    @property
    def rounds(self) -> IntArray:
        """Decode or verify rounds of each rollout [1]."""

    @property
    def is_clipped(self) -> npt.NDArray[np.bool_]:
        """Whether the limit cut the response."""


def step_table(runs: Sequence[tuple[int, Recorder]], steps: range) -> "pd.DataFrame":
    """One row a measured step: ``seed``, ``step``, ``step_time_s`` and a column a phase [s]."""
    import pandas as pd

    tables = []
    for seed, recorder in runs:
        records = [record for record in recorder.steps if record.step in steps]
        phases = {f"{name}_s": values for name, values in phase_seconds(records).items()}
        tables.append(
            pd.DataFrame(
                {
                    "seed": seed,
                    "step": [record.step for record in records],
                    "begin_s": [record.begin_s for record in records],
                    "end_s": [record.end_s for record in records],
                    "step_time_s": step_seconds(records),
                    **phases,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def rollout_table(
    runs: Sequence[tuple[int, Recorder, Sequence[DrawnRollouts]]], steps: range
) -> "pd.DataFrame":
    """One row a rollout of a measured step: tokens, rounds, instants, policy lag."""
    import pandas as pd

    tables = []
    for seed, recorder, batches in runs:
        drawn = pd.concat(
            [
                pd.DataFrame(
                    {
                        "seed": seed,
                        "step": batch.step,
                        "rollout": np.arange(batch.response_tokens.size),
                        "prompt_tokens": batch.prompt_tokens,
                        "response_tokens": batch.response_tokens,
                        "is_clipped": batch.is_clipped,
                        "rounds": batch.rounds,
                    }
                )
                for batch in batches
                if batch.step in steps
            ]
        )
        started = pd.DataFrame(
            recorder.admissions, columns=["step", "rollout", "version", "started_s"]
        )
        completed = pd.DataFrame(
            {
                "step": np.concatenate([chunk.batch for chunk in recorder.rollouts]),
                "rollout": np.concatenate([chunk.rollout for chunk in recorder.rollouts]),
                "completed_s": np.concatenate([c.completed_s for c in recorder.rollouts]),
            }
        )
        keys = ["step", "rollout"]
        table = drawn.merge(started, on=keys, how="left").merge(completed, on=keys, how="left")
        table["policy_lag_steps"] = table["step"] - table["version"]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def batch_table(recorder: Recorder, steps: range) -> "pd.DataFrame":
    """Decoding sequences of the whole pool over time: ``step``, ``time_s``, ``running``.

    ``step`` is the update that the loop was heading for. A row is left out while the count stays
    within 1/2,000 of the peak of the last row.
    """
    import pandas as pd

    records = [record for record in recorder.steps if record.step in steps]
    instants, running = running_over_time(recorder.batches)
    inside = (instants >= records[0].begin_s) & (instants <= records[-1].end_s)
    instants, running = instants[inside], running[inside]
    level = running * _LEVELS // max(int(running.max(initial=0)), 1)
    is_kept = np.ones(level.size, dtype=bool)
    is_kept[1:-1] = (level[1:-1] != level[:-2]) | (level[1:-1] != level[2:])
    ends = np.asarray([record.end_s for record in records])
    step = records[0].step + np.searchsorted(ends, instants[is_kept], side="left")
    return pd.DataFrame({"step": step, "time_s": instants[is_kept], "running": running[is_kept]})
