"""All replications of one scenario, averaged over independent blocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from simulator.analysis.model_error import StepShares, widened
from simulator.pipeline.run import Replication, Runner
from simulator.results.estimates import Estimate, estimate_mean, estimate_ratio
from simulator.results.statistics import (
    PHASES,
    generation_seconds,
    phase_seconds,
    policy_lags,
    step_seconds,
)
from simulator.results.tables import batch_table, rollout_table, step_table
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]


def simulate_arm(resolved: ResolvedScenario, tick: Callable[[], None]) -> "Arm":
    """Run every replication of a scenario; ``tick`` is called after each."""
    runner = Runner(resolved)
    replications = []
    for replication in range(resolved.scenario.seeds):
        replications.append(runner.run(replication))
        tick()
    return Arm(runner, tuple(replications))


@dataclass(frozen=True)
class Arm:
    """Replications of one scenario and what they say."""

    runner: Runner
    replications: tuple[Replication, ...]

    @property
    def scenario(self) -> Scenario:
        """The scenario that was run."""
        return self.runner.resolved.scenario

    @property
    def _is_synchronous(self) -> bool:
        return self.scenario.pipeline.max_policy_lag == 0

    @property
    def _measured(self) -> slice:
        return slice(self.runner.warmup_steps, None)

    @property
    def _steps(self) -> range:
        first = self.runner.warmup_steps
        return range(first, first + self.scenario.steps)

    def _blocks(self, per_step: list[FloatArray]) -> FloatArray:
        """Means over blocks of steps of every replication, shape ``(blocks,)``."""
        size = 1 if self._is_synchronous else self.scenario.pipeline.max_policy_lag + 1
        means: list[float] = []
        for values in per_step:
            groups = max(values.size // size, 1)
            means += [float(part.mean()) for part in np.array_split(values, groups)]
        return np.asarray(means)

    @cached_property
    def step_blocks_s(self) -> FloatArray:
        """Step time of each block, shape ``(blocks,)`` [s]."""
        return self._blocks(
            [step_seconds(run.loop.steps[self._measured]) for run in self.replications]
        )

    @cached_property
    def generation_blocks_s(self) -> FloatArray:
        """Generation at its own pace in each block, shape ``(blocks,)`` [s]."""
        return self._blocks(
            [
                generation_seconds(run.pace.steps[self._measured], self._is_synchronous)
                for run in self.replications
            ]
        )

    @cached_property
    def _phase_blocks_s(self) -> Mapping[str, FloatArray]:
        runs = [phase_seconds(run.loop.steps[self._measured]) for run in self.replications]
        return {name: self._blocks([run[name] for run in runs]) for name in PHASES}

    @cached_property
    def _token_blocks(self) -> FloatArray:
        """Response tokens a step in each block, shape ``(blocks,)`` [tokens]."""
        return self._blocks(
            [
                np.asarray([float(b.response_tokens.sum()) for b in run.batches[self._measured]])
                for run in self.replications
            ]
        )

    @cached_property
    def shares(self) -> StepShares:
        """What the step rests on, for the error of the cost models."""
        blocks, step = self._phase_blocks_s, float(self.step_blocks_s.sum())
        share = {name: float(values.sum()) / step for name, values in blocks.items()}
        return StepShares(
            error=self.runner.resolved.profile.model_error,
            generation=share["exposed_generation"],
            training=share["logprob"] + share["training"],
            weight_sync=share["prepare"],
            is_speculative=self.scenario.speculation.is_active,
        )

    def phases(self) -> dict[str, Estimate]:
        """Seconds of each phase of a step, and of generation at its own pace."""
        blocks = {**self._phase_blocks_s, "generation": self.generation_blocks_s}
        error, generation_sigma = self.shares.error, self.shares.generation_sigma
        sigmas = {
            "data": 0.0,
            "prepare": error.weight_sync,
            "generation": generation_sigma,
            "exposed_generation": generation_sigma,
            "reward": 0.0,
            "logprob": error.training,
            "training": error.training,
        }
        return {name: widened(estimate_mean(blocks[name]), sigmas[name]) for name in sigmas}

    def estimates(self) -> dict[str, Estimate]:
        """Step time, throughput, shares, lengths and lag."""
        rollouts = self.scenario.workload.rollouts_per_step
        gpus = self.scenario.cluster.gpus
        exposed = self._phase_blocks_s["exposed_generation"]
        lags = [policy_lags(run.loop, self._steps).mean() for run in self.replications]
        shares = self.shares
        throughput = estimate_ratio(self._token_blocks, self.step_blocks_s * gpus)
        share = widened(estimate_ratio(exposed, self.step_blocks_s), shares.share_sigma)
        return {
            "step_time_s": widened(estimate_mean(self.step_blocks_s), shares.step_sigma),
            "tokens_per_s_per_gpu": widened(throughput, shares.step_sigma),
            "generation_share": Estimate(share.mean, share.low, min(share.high, 1.0)),
            "mean_response_tokens": estimate_mean(self._token_blocks / rollouts),
            "mean_policy_lag": estimate_mean(np.asarray(lags)),
        }

    def facts(self) -> dict[str, str]:
        """What was decided or counted, for a reader."""
        placement = self.runner.placement
        batches = [b for run in self.replications for b in run.batches[self._measured]]
        decoded = sum(float((b.response_tokens - 1).sum()) for b in batches)
        rounds = sum(float(b.rounds.sum()) for b in batches)
        clipped = sum(int(b.is_clipped.sum()) for b in batches)
        rollouts = sum(b.size for b in batches)
        busy = sum(run.loop.busy_s for run in self.replications)
        facts = {
            "sharding": f"{placement.parallelism.describe()} "
            f"({placement.parallelism.gpus} GPUs an instance, {placement.replicas} instances)",
            "KV cache": f"{placement.memory.kv_tokens:,.0f} tokens an instance",
            "largest running batch": f"{self._largest_batch():,} sequences an instance",
            "clipped responses": f"{clipped / rollouts:.2%}",
            "preemptions": f"{sum(run.loop.preemptions for run in self.replications):,}",
        }
        if self.scenario.speculation.is_active:
            draft = sum(run.loop.draft_s for run in self.replications)
            facts["acceptance length"] = f"{decoded / rounds:.2f} tokens a round (pooled)"
            facts["time in drafting"] = f"{draft / busy:.1%} of generation"
        software = sum(run.loop.software_s for run in self.replications)
        facts["time in engine software"] = f"{software / busy:.1%} of generation"
        return facts

    def _largest_batch(self) -> int:
        return max(
            (
                int(chunk.running.max())
                for run in self.replications
                for chunk in run.loop.batches
                if chunk.running.size
            ),
            default=0,
        )

    def warnings(self) -> tuple[str, ...]:
        """Where the projection leaves firm ground."""
        batches = [batch for run in self.replications for batch in run.batches]
        warnings = list(
            self.runner.placement.departures(
                self._largest_batch(),
                float(max(batch.sequence_tokens.max() for batch in batches)),
                float(max(batch.prompt_tokens.max() for batch in batches)),
            )
        )
        if self.step_blocks_s.size < 2:
            warnings.append("one step of one seed gives no interval; ask for more steps or seeds")
        return tuple(warnings)

    def tables(self) -> dict[str, "pd.DataFrame"]:
        """Steps and rollouts of all replications, running batch of the first."""
        runs = list(enumerate(self.replications))
        return {
            "steps": step_table([(seed, run.loop) for seed, run in runs], self._steps),
            "rollouts": rollout_table(
                [(seed, run.loop, run.batches) for seed, run in runs], self._steps
            ),
            "batch": batch_table(self.replications[0].loop, self._steps),
        }
