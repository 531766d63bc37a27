"""Which sharding ``auto`` stands for: the one whose plain baseline generates fastest and fits.

Each candidate is tried on one instance with lengths at evenly spaced probabilities, and those that
come close to the fastest on all instances with one fixed batch of drawn lengths, so that the choice
depends on the scenario alone and not on its seed.
"""

from dataclasses import dataclass, replace

import numpy as np

from simulator.costs.round_table import RoundTable
from simulator.costs.training import TrainingCost
from simulator.errors import InfeasibleError
from simulator.pipeline.batch import RolloutBatch, draw_batch
from simulator.pipeline.placement import Placement, candidates, place
from simulator.pipeline.world import LoopSettings, World
from simulator.policies.synchrony import BoundedLag
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.scenario import Scenario
from simulator.specs.speculation import Speculation
from simulator.streams import Streams

_GOLDEN_RATIO_FRACTION = 0.6180339887498949
_CLOSE = 1.15
"""Typical pace over the best up to which a sharding is tried in full [1]."""
_LEADERS = 6


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
            return _fastest(plain, sorted(found, key=_pace_then_size))
        limit *= 2
        if domain is not None or limit > resolved.scenario.generation_gpus:
            break
    if refusals:
        raise min(refusals, key=lambda error: len(str(error)))
    raise InfeasibleError(
        f"no sharding divides both {resolved.model.name} and "
        f"{resolved.scenario.generation_gpus} GPUs (heads {resolved.model.attention.num_heads}); "
        "set engine.tensor_parallel, engine.data_parallel and engine.expert_parallel to numbers "
        "that do, or to auto, or change the number of GPUs"
    )


def _pace_then_size(found: tuple[float, EngineParallelism]) -> tuple[float, int, int]:
    seconds, ranks = found
    return seconds, ranks.gpus, ranks.tensor


def _fastest(
    plain: ResolvedScenario, ranked: list[tuple[float, EngineParallelism]]
) -> EngineParallelism:
    """The fastest of the leaders when all their instances share a batch of drawn lengths.

    A typical instance does not know that the slowest of many decides, which speaks against small
    ones; only shardings whose typical pace is close to the best are worth the longer trial.
    """
    best = ranked[0][0]
    leaders = [ranks for seconds, ranks in ranked[:_LEADERS] if seconds <= _CLOSE * best]
    if len(leaders) == 1:
        return leaders[0]
    batch = draw_batch(plain.scenario, Streams(0, 0), 0)
    paces = [(_pace_s(plain.scenario, place(plain, ranks), batch), ranks) for ranks in leaders]
    return min(paces, key=_pace_then_size)[1]


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
    batch = _typical_batch(scenario, placement.replicas)
    return _pace_s(scenario, replace(placement, replicas=1), batch)


def _pace_s(scenario: Scenario, placement: Placement, batch: RolloutBatch) -> float:
    """Generation seconds a step when every step generates this batch [s]."""
    lag = scenario.pipeline.max_policy_lag
    steps = 1 if lag == 0 else 2 * (lag + 1)
    share = -(-batch.size // placement.replicas) + scenario.workload.samples_per_prompt
    table = RoundTable(
        placement.costs,
        max_sequences=min(share * scenario.pipeline.open_batches, placement.limits.max_sequences),
        max_context_tokens=float(batch.sequence_tokens.max()),
    )
    world = World(
        placement,
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
