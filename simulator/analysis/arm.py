"""All replications of one scenario, averaged over independent blocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

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

_FEW_BLOCKS = 4
_NOTABLE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Averaging:
    """Which steps count, and how many in a row are one independent block."""

    warmup_steps: int
    """Steps left out at the start [steps]."""
    block_steps: int
    """Consecutive steps of a block: as many as there may be open batches [steps]."""

    @classmethod
    def over(cls, *scenarios: Scenario) -> Self:
        """One that suits all of these, so that they can be paired block by block."""
        return cls(
            max(scenario.effective_warmup_steps for scenario in scenarios),
            max(scenario.pipeline.max_policy_lag for scenario in scenarios) + 1,
        )


def simulate_arm(
    resolved: ResolvedScenario, averaging: Averaging, tick: Callable[[], None]
) -> "Arm":
    """Run every replication of a scenario; ``tick`` is called after each."""
    runner = Runner(resolved, averaging.warmup_steps)
    replications = []
    for replication in range(resolved.scenario.seeds):
        replications.append(runner.run(replication))
        tick()
    return Arm(runner, averaging, tuple(replications))


@dataclass(frozen=True)
class Arm:
    """Replications of one scenario and what they say."""

    runner: Runner
    averaging: Averaging
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
        """Sums over blocks of steps of every replication, shape ``(blocks,)``."""
        return np.asarray(
            [
                float(part.sum())
                for values in per_step
                for part in np.array_split(
                    values, max(values.size // self.averaging.block_steps, 1)
                )
            ]
        )

    @cached_property
    def block_steps(self) -> FloatArray:
        """Steps in each block, shape ``(blocks,)`` [steps]."""
        return self._blocks([np.ones(self.scenario.steps) for _ in self.replications])

    @cached_property
    def step_blocks_s(self) -> FloatArray:
        """Step times summed over each block, shape ``(blocks,)`` [s]."""
        return self._blocks(
            [step_seconds(run.loop.steps[self._measured]) for run in self.replications]
        )

    @cached_property
    def generation_blocks_s(self) -> FloatArray:
        """Generation at its own pace, summed over each block, shape ``(blocks,)`` [s]."""
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
        """Response tokens of each block, shape ``(blocks,)`` [tokens]."""
        return self._blocks(
            [
                np.asarray([float(b.response_tokens.sum()) for b in run.batches[self._measured]])
                for run in self.replications
            ]
        )

    def _mean(self, sums: FloatArray) -> Estimate:
        """Mean over steps of what was summed over blocks."""
        return estimate_ratio(sums, self.block_steps)

    @cached_property
    def shares(self) -> StepShares:
        """What the step rests on, for the error of the cost models."""
        blocks, step = self._phase_blocks_s, float(self.step_blocks_s.sum())
        share = {name: float(values.sum()) / step for name, values in blocks.items()}
        resolved = self.runner.resolved
        training = resolved.profile.training.error
        return StepShares(
            error=resolved.profile.model_error,
            training_error=training.moe if resolved.model.is_moe else training.dense,
            generation=share["exposed_generation"],
            training=share["logprob"] + share["training"],
            weight_sync=share["prepare"],
            is_speculative=self.scenario.speculation.is_active,
        )

    def phases(self) -> dict[str, Estimate]:
        """Seconds of each phase of a step, and of generation at its own pace."""
        blocks = {**self._phase_blocks_s, "generation": self.generation_blocks_s}
        shares = self.shares
        sigmas = {
            "data": 0.0,
            "prepare": shares.error.weight_sync,
            "generation": shares.generation_sigma,
            "exposed_generation": shares.generation_sigma,
            "reward": 0.0,
            "logprob": shares.training_error,
            "training": shares.training_error,
        }
        return {name: widened(self._mean(blocks[name]), sigmas[name]) for name in sigmas}

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
            "step_time_s": widened(self._mean(self.step_blocks_s), shares.step_sigma),
            "tokens_per_s_per_gpu": widened(throughput, shares.step_sigma),
            "generation_share": Estimate(share.mean, share.low, min(share.high, 1.0)),
            "mean_response_tokens": self._mean(self._token_blocks / rollouts),
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
            f"(GPUs an instance: {placement.parallelism.gpus}, instances: {placement.replicas})",
            "trainer": self.runner.trainer.ranks.describe(),
            "KV cache": f"{placement.memory.kv_tokens:,.0f} tokens an instance",
            "largest running batch": f"{self._largest_batch():,} sequences an instance",
            "clipped responses": f"{clipped / rollouts:.2%}",
            "preemptions": f"{sum(run.loop.preemptions for run in self.replications):,}",
        }
        if self.scenario.speculation.is_active:
            draft = sum(run.loop.draft_s for run in self.replications)
            if rounds:
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
        blocks = self.step_blocks_s.size
        if blocks < _FEW_BLOCKS:
            warnings.append(
                f"{blocks} independent block{'s' * (blocks > 1)} of steps: the share of chance in "
                f"the interval is {'very uncertain' if blocks > 1 else 'missing'}; ask for more "
                "steps or seeds"
            )
        cycle = self.averaging.block_steps
        if cycle > 1 and self.scenario.steps < _FEW_BLOCKS * cycle:
            warnings.append(
                f"steps of this asynchronous loop come in bursts of up to {cycle}, which "
                f"{self.scenario.steps} of them do not average out; ask for at least "
                f"{_FEW_BLOCKS * cycle}"
            )
        share = self._eager_share()
        if share > _NOTABLE_SHARE:
            limit = self.runner.placement.costs.captured_tokens
            warnings.append(
                f"{share:.0%} of generation runs more than the {limit} tokens that CUDA graphs are "
                "captured for, and waits for the CPU; see engine.captured_tokens, "
                "engine.max_num_seqs and engine.tensor_parallel"
            )
        return tuple(warnings)

    def _eager_share(self) -> float:
        """Share of generation whose rounds are beyond the captured range [1]."""
        costs = self.runner.placement.costs
        ranks = costs.target.parallelism
        most = costs.captured_tokens * ranks.data * ranks.pipeline / costs.query_tokens
        chunks = [chunk for run in self.replications for chunk in run.loop.batches]
        eager = sum(float((c.end_s - c.start_s)[c.running > most].sum()) for c in chunks)
        return eager / sum(float((c.end_s - c.start_s).sum()) for c in chunks)

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
