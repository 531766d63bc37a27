"""One generation replica as a SimPy process, on the event clock.

The replica plans its batch to the end, turns the plan into seconds, and sleeps until somebody is
waiting for something: the last rollout of a training batch on this replica, new work, or a weight
update. What interferes takes effect at the end of the running iteration: the plan is cut there
and made anew.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from simulator.costs.round_table import RoundTable
from simulator.results.recorder import BatchChunk, Recorder, RolloutChunk
from simulator.rollout.batch import BatchState
from simulator.rollout.batch_plan import plan_batch
from simulator.rollout.sequence import BatchLimits, Sequence
from simulator.rollout.timeline import Timeline, price_plan

SimEvents = Generator[simpy.Event, Any, None]


@dataclass(slots=True)
class _Current:
    """The plan being carried out."""

    timeline: Timeline
    version: int
    reported: int = 0
    """Completions already told to the controller [1]."""


class Replica:
    """A replica that runs whatever is submitted and reports finished batches.

    Parameters
    ----------
    env
        SimPy environment, whose clock is in seconds.
    index
        Which replica of the pool [1].
    table
        Prices of its rounds.
    limits
        What bounds its running batch.
    recorder
        Receives completions and the running batch over time.
    """

    def __init__(
        self,
        env: simpy.Environment,
        index: int,
        table: RoundTable,
        limits: BatchLimits,
        recorder: Recorder,
    ) -> None:
        self.env = env
        self.index = index
        self.table = table
        self.limits = limits
        self.recorder = recorder
        self.version = 0
        self._state = BatchState()
        self._inbox: list[Sequence] = []
        self._pause_s = 0.0
        self._free_at_s = 0.0
        self._open: dict[int, int] = {}
        self._done: dict[int, simpy.Event] = {}
        self._current: _Current | None = None
        self._wake = env.event()
        self.process = env.process(self._run())

    def submit(self, batch: int, sequences: list[Sequence]) -> simpy.Event:
        """Queue the sequences of a batch; the event succeeds when all of them are complete."""
        done = self.env.event()
        if not sequences:
            return done.succeed()
        self._open[batch] = len(sequences)
        self._done[batch] = done
        self._inbox.extend(sequences)
        self._alarm()
        return done

    def update_weights(self, version: int, pause_s: float) -> None:
        """Pause for a weight update; sequences keep their KV and go on under ``version``."""
        self.version = version
        self._pause_s += pause_s
        self._alarm()

    def settle(self) -> None:
        """Record what the plan under way has done by now; for the end of a run."""
        if self._current is not None and (begun := self._until_now(self._current)) is not None:
            self._finish(begun)

    def _alarm(self) -> None:
        if not self._wake.triggered:
            self._wake.succeed()

    # -- the process -----------------------------------------------------------------------

    def _run(self) -> SimEvents:
        while True:
            self._take_in()
            if self._state.is_empty:
                yield self._wake
            else:
                yield from self._carry_out(self._plan())

    def _take_in(self) -> None:
        """Apply what was asked for since the last plan was made."""
        if self._wake.triggered:
            self._wake = self.env.event()
        self._state.waiting.extend(self._inbox)
        self._inbox.clear()
        self._free_at_s = max(self._free_at_s, self.env.now) + self._pause_s
        self._pause_s = 0.0

    def _plan(self) -> _Current:
        plan = plan_batch(self._state, self.limits)
        return _Current(price_plan(plan, self.table, self._free_at_s), self.version)

    def _carry_out(self, current: _Current) -> SimEvents:
        """Sleep from one finished batch to the next, until the plan ends or is cut."""
        self._current = current
        for instant in self._report_instants(current.timeline):
            yield self.env.timeout(max(instant - self.env.now, 0.0)) | self._wake
            if self._wake.triggered:
                self._current = begun = self._until_now(current)
                if begun is None:
                    return
                yield self.env.timeout(max(begun.timeline.end_s - self.env.now, 0.0))
                current = begun
                break
            self._report(current, instant)
        self._finish(current)

    def _until_now(self, current: _Current) -> _Current | None:
        """The same plan, cut at the end of the running iteration; None if it has not begun."""
        iterations, _ = current.timeline.iterations_until(self.env.now)
        if iterations == 0:
            return None
        plan = plan_batch(self._state, self.limits, until=iterations)
        timeline = price_plan(plan, self.table, float(current.timeline.edges_s[0]))
        return _Current(timeline, current.version, current.reported)

    def _finish(self, current: _Current) -> None:
        """Leave a plan that ran to its end, or to where it was cut."""
        self._report(current, current.timeline.end_s)
        self._record(current)
        self._state = current.timeline.plan.end
        self._free_at_s = current.timeline.end_s
        self._current = None

    def _report_instants(self, timeline: Timeline) -> list[float]:
        """When each training batch has its last completion in this plan, and the plan's end."""
        last: dict[int, float] = {}
        for sequence, instant in zip(
            timeline.plan.completed, timeline.completed_s.tolist(), strict=True
        ):
            last[sequence.batch] = instant
        return sorted({*last.values(), timeline.end_s})

    def _report(self, current: _Current, until_s: float) -> None:
        """Record completions up to ``until_s`` and tell whoever waits for their batches."""
        times = current.timeline.completed_s
        stop = int(np.searchsorted(times, until_s, side="right"))
        finished = current.timeline.plan.completed[current.reported : stop]
        if not finished:
            return
        self.recorder.rollouts.append(
            RolloutChunk(
                batch=np.fromiter((s.batch for s in finished), np.int64, len(finished)),
                rollout=np.fromiter((s.rollout for s in finished), np.int64, len(finished)),
                completed_s=times[current.reported : stop],
            )
        )
        current.reported = stop
        for sequence in finished:
            self._open[sequence.batch] -= 1
            if self._open[sequence.batch] == 0:
                del self._open[sequence.batch]
                self._done.pop(sequence.batch).succeed()

    def _record(self, current: _Current) -> None:
        timeline, recorder = current.timeline, self.recorder
        plan = timeline.plan
        recorder.batches.append(
            BatchChunk(
                self.index,
                timeline.edges_s[:-1],
                timeline.edges_s[1:],
                plan.sequences,
                plan.waiting,
            )
        )
        recorder.preemptions += plan.preemptions
        recorder.busy_s += float(timeline.edges_s[-1] - timeline.edges_s[0])
        draft_s, software_s = self.table.draft_and_software_s(
            plan.sequences.astype(np.float64), plan.context_tokens
        )
        recorder.draft_s += float((draft_s * plan.iterations).sum())
        recorder.software_s += float((software_s * plan.iterations).sum())
        for sequence, instant in zip(plan.admitted, timeline.admitted_s.tolist(), strict=True):
            recorder.admissions.append((sequence.batch, sequence.rollout, current.version, instant))
