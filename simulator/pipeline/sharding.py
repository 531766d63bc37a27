"""Which sharding ``auto`` stands for: the one whose plain baseline generates fastest and fits.

Each candidate is tried on one instance with lengths at evenly spaced probabilities instead of
draws, so that the choice depends on the scenario alone and not on a seed.
"""

from dataclasses import dataclass, replace

import numpy as np

from simulator.costs.round_table import RoundTable
from simulator.costs.training import TrainingCost
from simulator.errors import InfeasibleError
from simulator.pipeline.batch import RolloutBatch
from simulator.pipeline.placement import Placement, candidates, place
from simulator.pipeline.world import LoopSettings, World
from simulator.policies.synchrony import BoundedLag
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.scenario import Scenario
from simulator.specs.speculation import Speculation

_GOLDEN_RATIO_FRACTION = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class InstantStages:
    """Everything around generation takes no time: what is left is generation's own pace."""

    data_s: float = 0.0
    reward_s: float = 0.0
    prepare_s: float = 0.0

    def training(self, batch: RolloutBatch) -> TrainingCost:
        """No time, whatever the batch."""
        del batch
        return TrainingCost(0.0, 0.0)


def choose_parallelism(resolved: ResolvedScenario) -> EngineParallelism:
    """Decide every ``auto`` of the scenario's engine.

    Raises
    ------
    InfeasibleError
        If no sharding that the scenario allows fits into memory; the message is that of the
        sharding which lacks least.
    """
    plain = replace(
        resolved,
        scenario=resolved.scenario.model_copy(update={"speculation": Speculation()}),
        draft_model=None,
    )
    domain = resolved.scenario.engine.max_instance_gpus
    limit = domain or resolved.profile.network.scale_up_gpus
    refusals: list[InfeasibleError] = []
    while True:
        found = [
            (seconds, ranks)
            for ranks in candidates(resolved, limit)
            if (seconds := _pace_or_refusal(plain, resolved, ranks, refusals)) is not None
        ]
        if found:
            return min(found, key=lambda pair: (pair[0], pair[1].gpus, pair[1].tensor))[1]
        limit *= 2
        if domain is not None or limit > resolved.scenario.generation_gpus:
            break
    if refusals:
        raise min(refusals, key=lambda error: len(str(error)))
    raise InfeasibleError(
        f"no sharding divides both {resolved.model.name} and "
        f"{resolved.scenario.generation_gpus} GPUs; set engine.tensor_parallel, "
        "engine.data_parallel and engine.expert_parallel, or change the number of GPUs"
    )


def _pace_or_refusal(
    plain: ResolvedScenario,
    resolved: ResolvedScenario,
    ranks: EngineParallelism,
    refusals: list[InfeasibleError],
) -> float | None:
    """Seconds a step of the plain baseline, or ``None`` and a refusal where it does not fit."""
    try:
        place(resolved, ranks)
        return _typical_pace_s(plain.scenario, place(plain, ranks))
    except InfeasibleError as error:
        refusals.append(error)
        return None


def _typical_pace_s(scenario: Scenario, placement: Placement) -> float:
    """Generation seconds a step of one instance with typical lengths [s]."""
    lag = scenario.pipeline.max_policy_lag
    steps = 1 if lag == 0 else 2 * (lag + 1)
    batch = _typical_batch(scenario, placement.replicas)
    table = RoundTable(
        placement.costs,
        max_sequences=min(
            batch.size * scenario.pipeline.open_batches, placement.limits.max_sequences
        ),
        max_context_tokens=float(batch.sequence_tokens.max()),
    )
    world = World(
        replace(placement, replicas=1),
        table,
        InstantStages(),
        lambda step: replace(batch, step=step),
        LoopSettings(
            steps=steps,
            synchrony=BoundedLag(
                max_policy_lag=lag, max_open_batches=scenario.pipeline.open_batches
            ),
            shares_prefill=scenario.engine.prefix_caching,
        ),
    )
    records = world.run().steps
    return records[-1].end_s / steps


def _typical_batch(scenario: Scenario, replicas: int) -> RolloutBatch:
    """Rollouts of one replica at evenly spaced probabilities, with the longest of all replicas."""
    workload = scenario.workload
    count = max(workload.rollouts_per_step // replicas, 1)
    lengths = workload.responses.typical_lengths(count)
    lengths[-1] = workload.responses.typical_lengths(workload.rollouts_per_step)[-1]
    order = np.argsort(np.modf(np.arange(count) * _GOLDEN_RATIO_FRACTION)[0], kind="stable")
    prompt_tokens = np.full(count, round(workload.prompts.typical_lengths(101).mean()))
    return RolloutBatch(
        step=0,
        prompt=np.arange(count) // workload.samples_per_prompt,
        prompt_tokens=prompt_tokens,
        response_tokens=lengths[order],
        is_clipped=np.zeros(count, dtype=np.bool_),
        rounds=lengths[order] - 1,
    )
