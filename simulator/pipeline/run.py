"""One replication of a scenario: placement, draws, the loop, and generation at its own pace."""

from dataclasses import dataclass
from functools import cache

from simulator.costs.round_table import RoundTable
from simulator.costs.trainer import Trainer
from simulator.costs.training import TrainingCost, training_cost
from simulator.costs.weight_sync import weight_sync
from simulator.pipeline.batch import RolloutBatch, draw_batch
from simulator.pipeline.placement import Placement, place
from simulator.pipeline.sharding import InstantStages, choose_parallelism
from simulator.pipeline.trainer import choose_trainer
from simulator.pipeline.world import BatchSource, LoopSettings, StageTimes, World
from simulator.policies.synchrony import BoundedLag
from simulator.results.recorder import Recorder
from simulator.specs.resolved import ResolvedScenario
from simulator.streams import Streams


@dataclass(frozen=True, slots=True)
class ModelledStages:
    """Seconds of everything around generation, from the cost models."""

    trainer: Trainer
    data_s: float
    reward_s: float
    prepare_s: float

    def training(self, batch: RolloutBatch) -> TrainingCost:
        """Price log-probabilities and update of this batch."""
        return training_cost(self.trainer, batch.sequence_tokens)


@dataclass(frozen=True, slots=True)
class Replication:
    """What one replication left behind."""

    loop: Recorder
    """The whole loop."""
    pace: Recorder
    """The same batches with everything around generation instantaneous."""
    batches: tuple[RolloutBatch, ...]
    """Rollouts of every step, warm-up included."""


class Runner:
    """Runs replications of one scenario on one placement.

    Parameters
    ----------
    resolved
        The scenario and the documents it names.
    warmup_steps
        Steps left out of averages; default: the scenario's.

    Raises
    ------
    InfeasibleError
        If the model fits neither the engine's nor the trainer's GPUs.
    """

    def __init__(self, resolved: ResolvedScenario, warmup_steps: int | None = None) -> None:
        self.resolved = resolved
        self.placement: Placement = place(resolved, choose_parallelism(resolved))
        self.trainer = choose_trainer(resolved)
        scenario = resolved.scenario
        self.warmup_steps = (
            scenario.effective_warmup_steps if warmup_steps is None else warmup_steps
        )
        workload, pipeline = scenario.workload, scenario.pipeline
        rollouts = workload.rollouts_per_step * pipeline.open_batches
        self._table = RoundTable(
            self.placement.costs,
            max_sequences=min(
                -(-rollouts // self.placement.replicas) + pipeline.open_batches,
                self.placement.limits.max_sequences,
            ),
            max_context_tokens=float(workload.max_prompt_tokens + workload.max_response_tokens),
        )

    def run(self, replication: int) -> Replication:
        """Simulate one replication."""
        scenario = self.resolved.scenario
        streams = Streams(scenario.seed, replication)

        @cache
        def batches(step: int) -> RolloutBatch:
            return draw_batch(scenario, streams, step)

        stages = ModelledStages(
            trainer=self.trainer,
            data_s=scenario.pipeline.data_s,
            reward_s=scenario.pipeline.reward_s,
            prepare_s=weight_sync(
                self.placement.costs.target, scenario.pipeline, scenario.engine.software
            ).total_s,
        )
        loop = self._loop(stages, batches)
        is_synchronous = scenario.pipeline.max_policy_lag == 0
        pace = loop if is_synchronous else self._loop(InstantStages(), batches)
        steps = self.warmup_steps + scenario.steps
        return Replication(loop, pace, tuple(batches(step) for step in range(steps)))

    def _loop(self, stages: StageTimes, batches: BatchSource) -> Recorder:
        scenario = self.resolved.scenario
        pipeline = scenario.pipeline
        settings = LoopSettings(
            steps=self.warmup_steps + scenario.steps,
            synchrony=BoundedLag(
                max_policy_lag=pipeline.max_policy_lag, max_open_batches=pipeline.open_batches
            ),
            shares_prefill=scenario.engine.prefix_caching,
        )
        return World(self.placement, self._table, stages, batches, settings).run()
