"""Everything that is derived from a record after the run: phases, pace, lag, running batch.

The rules are numbered in ``docs/semantics.md``; each function names the rule it carries out.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from simulator.results.recorder import BatchChunk, Recorder, StepRecord

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PHASES = ("data", "prepare", "exposed_generation", "reward", "logprob", "training")
"""Phases that add up to the step, in the order in which results list them."""


def phase_seconds(records: Sequence[StepRecord]) -> dict[str, FloatArray]:
    """Seconds of each phase of each step, arrays ``(steps,)`` (rules S2 and S3) [s].

    The trainer's wait for a batch is split by what that batch was doing meanwhile: drawing prompts,
    generating, being rewarded. Waiting for a batch that was not open yet counts as generation.
    """
    begin, opened, submitted, generated, rewarded, scored, trained, end = (
        _column(records, name)
        for name in (
            "begin_s",
            "opened_s",
            "submitted_s",
            "generated_s",
            "rewarded_s",
            "scored_s",
            "trained_s",
            "end_s",
        )
    )
    taken = np.maximum(rewarded, begin)
    data = _overlap(opened, submitted, begin, taken)
    reward = _overlap(generated, rewarded, begin, taken)
    return {
        "data": data,
        "prepare": end - trained,
        "exposed_generation": (taken - begin) - data - reward,
        "reward": reward,
        "logprob": scored - taken,
        "training": trained - scored,
    }


def step_seconds(records: Sequence[StepRecord]) -> FloatArray:
    """Seconds of each step: from one hand-over of weights to the next (rule S1) [s]."""
    return _column(records, "end_s") - _column(records, "begin_s")


def generation_seconds(records: Sequence[StepRecord], is_synchronous: bool) -> FloatArray:
    """Seconds of generation a step at its own pace, shape ``(steps,)`` (rule S4) [s].

    Synchronous: from submission to the last completion. Otherwise ``records`` are those of a loop
    in which everything but generation is instantaneous, and the pace is its step time.
    """
    if is_synchronous:
        return _column(records, "generated_s") - _column(records, "submitted_s")
    return step_seconds(records)


def policy_lags(recorder: Recorder, steps: range) -> IntArray:
    """Updates between each rollout's first weights and the policy it trains (rule S5) [steps]."""
    lags = [batch - version for batch, _, version, _ in recorder.admissions if batch in steps]
    return np.asarray(lags, dtype=np.int64)


def running_over_time(chunks: Sequence[BatchChunk]) -> tuple[FloatArray, IntArray]:
    """Decoding sequences of the whole pool, as instants and the count from there on [s, 1]."""
    if not chunks:
        return np.zeros(0), np.zeros(0, dtype=np.int64)
    instants = np.concatenate([edge for c in chunks for edge in (c.start_s, c.end_s)])
    changes = np.concatenate([change for c in chunks for change in (c.running, -c.running)])
    order = np.argsort(instants, kind="stable")
    instants, running = instants[order], np.cumsum(changes[order])
    last_of_instant = np.append(np.diff(instants) > 0, True)
    return instants[last_of_instant], running[last_of_instant]


def _column(records: Sequence[StepRecord], name: str) -> FloatArray:
    return np.fromiter((getattr(record, name) for record in records), np.float64, len(records))


def _overlap(
    start: FloatArray, end: FloatArray, window_start: FloatArray, window_end: FloatArray
) -> FloatArray:
    shared: FloatArray = np.minimum(end, window_end) - np.maximum(start, window_start)
    return np.maximum(shared, 0.0)
