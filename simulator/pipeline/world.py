"""The RL loop of one replication as SimPy processes: controller, replicas, trainer.

The controller opens batches as the synchrony rule allows, the replicas generate them, the trainer
takes them in order: log-probabilities, update, weight sync. With a lag of 0 this is the synchronous
loop, with more the asynchronous one; colocated and disaggregated differ in who has which GPUs.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from simulator.costs.round_table import RoundTable
from simulator.costs.training import TrainingCost
from simulator.errors import StuckError
from simulator.pipeline.batch import RolloutBatch, split_among_replicas
from simulator.pipeline.placement import Placement
from simulator.policies.synchrony import BoundedLag
from simulator.results.recorder import Recorder, StepRecord
from simulator.rollout.replica import Replica

SimEvents = Generator[simpy.Event, Any, None]


class StageTimes(Protocol):
    """Seconds of everything around generation."""

    @property
    def data_s(self) -> float:
        """Drawing prompts and building the batch [s]."""

    @property
    def reward_s(self) -> float:
        """From the last rollout to the last reward [s]."""

    @property
    def prepare_s(self) -> float:
        """From the update to engines with new weights [s]."""

    def training(self, batch: RolloutBatch) -> TrainingCost:
        """Seconds of log-probabilities and update for this batch."""
        ...


class BatchSource(Protocol):
    """Gives the rollouts of a step; the same ones whenever it is asked."""

    def __call__(self, step: int) -> RolloutBatch:
        """Rollouts of ``step``."""
        ...


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """What the loop needs besides prices."""

    steps: int
    """Updates to simulate [steps]."""
    synchrony: BoundedLag
    shares_prefill: bool
    """Whether answers of a group share the prefill of their prompt."""


class World:
    """Processes and shared state of one replication."""

    def __init__(
        self,
        placement: Placement,
        table: RoundTable,
        stages: StageTimes,
        batches: BatchSource,
        settings: LoopSettings,
    ) -> None:
        self.env = simpy.Environment()
        self.recorder = Recorder()
        self.stages = stages
        self.batches = batches
        self.settings = settings
        self.version = 0
        self.replicas = [
            Replica(self.env, index, table, placement.limits, self.recorder)
            for index in range(placement.replicas)
        ]
        self._records: dict[int, StepRecord] = {}
        self._generated: dict[int, simpy.Event] = {}
        self._drawn: dict[int, RolloutBatch] = {}
        self._open_batches = 0
        self._may_have_changed = self.env.event()
        self.env.process(self._control())
        self._trainer = self.env.process(self._train())

    def run(self) -> Recorder:
        """Simulate to the last update.

        Raises
        ------
        StuckError
            If nothing is left to happen before that.
        """
        try:
            self.env.run(until=self._trainer)
        except RuntimeError as error:
            waiting = sorted(step for step, event in self._generated.items() if not event.triggered)
            raise StuckError(
                f"the pipeline waits for itself at {self.env.now:.3f} s: {self.version} of "
                f"{self.settings.steps} updates done, batches {waiting} not generated"
            ) from error
        for replica in self.replicas:
            replica.settle()
        return self.recorder

    # -- processes -------------------------------------------------------------------------

    def _control(self) -> SimEvents:
        """Open batches in order, each as soon as the synchrony rule allows."""
        synchrony = self.settings.synchrony
        last = self.settings.steps + synchrony.max_policy_lag
        for step in range(last):
            self._generated[step] = self.env.event()
        for step in range(last):
            while not synchrony.may_start(step, self.version, self._open_batches):
                yield self._may_have_changed
            self._open_batches += 1
            record = self._record(step)
            record.opened_s = self.env.now
            yield self.env.timeout(self.stages.data_s)
            record.submitted_s = self.env.now
            batch = self._drawn[step] = self.batches(step)
            parts = split_among_replicas(batch, len(self.replicas), self.settings.shares_prefill)
            done = [
                replica.submit(step, part)
                for replica, part in zip(self.replicas, parts, strict=True)
            ]
            self.env.process(self._gather(step, done))

    def _gather(self, step: int, done: list[simpy.Event]) -> SimEvents:
        """Wait for all replicas to finish a batch."""
        yield self.env.all_of(done)
        self._record(step).generated_s = self.env.now
        self._open_batches -= 1
        self._generated[step].succeed()
        self._announce_change()

    def _train(self) -> SimEvents:
        """Take batches in order: reward, log-probabilities, update, weight sync."""
        for step in range(self.settings.steps):
            begin_s = self.env.now
            yield self._generated[step]
            record = self._record(step)
            record.begin_s = begin_s
            rewarded_s = record.generated_s + self.stages.reward_s
            yield self.env.timeout(max(rewarded_s - self.env.now, 0.0))
            record.rewarded_s = rewarded_s
            cost = self.stages.training(self._drawn.pop(step))
            yield self.env.timeout(cost.logprob_s)
            record.scored_s = self.env.now
            yield self.env.timeout(cost.training_s)
            record.trained_s = self.env.now
            for replica in self.replicas:
                replica.update_weights(step + 1, self.stages.prepare_s)
            yield self.env.timeout(self.stages.prepare_s)
            record.end_s = self.env.now
            self.recorder.steps.append(record)
            self.version = step + 1
            self._announce_change()

    # -- shared state ----------------------------------------------------------------------

    def _record(self, step: int) -> StepRecord:
        return self._records.setdefault(step, StepRecord(step))

    def _announce_change(self) -> None:
        self._may_have_changed.succeed()
        self._may_have_changed = self.env.event()
