"""What the trainer's ``auto`` stands for: the fastest sharding of a typical batch that fits.

Everything that does not fit is refused with the GiB that one GPU lacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Self

import numpy as np

from simulator.costs.packing import Loads, even, micro_batches
from simulator.costs.trainer import Trainer
from simulator.costs.trainer_links import TrainerHardware
from simulator.costs.trainer_memory import TrainerMemory, trainer_memory
from simulator.costs.training import logprob_pass_s, update_s_of
from simulator.errors import InfeasibleError
from simulator.specs.model import ModelSpec
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.trainer import TrainerParallelism
from simulator.specs.training import Ranks, Recompute
from simulator.specs.workload import Workload
from simulator.units import format_gib

_MOST_TENSOR_RANKS = 8
_MOST_STAGES = 16
_MOST_CONTEXT_RANKS = 32
_RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")


@dataclass(frozen=True, slots=True)
class _TypicalBatch:
    """Rollouts of one step in four numbers."""

    rollouts: int
    mean_tokens: float
    """Mean of prompt and response [tokens]."""
    longest_tokens: float
    """Longest of one step [tokens]."""
    limit_tokens: float
    """Longest that the workload allows [tokens]."""

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """The batch of a workload at evenly spaced probabilities."""
        prompts = workload.prompts.typical_lengths(1000)
        responses = workload.responses.typical_lengths(min(workload.rollouts_per_step, 10_000))
        prompt = float(prompts.max())
        return cls(
            rollouts=workload.rollouts_per_step,
            mean_tokens=float(prompts.mean() + responses.mean()),
            longest_tokens=float(responses.max()) + prompt,
            limit_tokens=workload.max_response_tokens + prompt,
        )


def choose_trainer(resolved: ResolvedScenario) -> Trainer:
    """Decide every ``auto`` of ``training.parallelism`` and ``training.recompute``.

    Raises
    ------
    InfeasibleError
        If no sharding that the scenario allows divides the GPUs, or none fits into memory; the
        message names what the one that lacks least lacks.
    """
    scenario = resolved.scenario
    hardware = TrainerHardware.of(resolved.profile)
    base = Trainer(resolved.model, hardware, scenario.training, TrainerParallelism())
    batch = _TypicalBatch.of(scenario.workload)
    fastest: tuple[float, int, Trainer] | None = None
    nearest: _Misfit | None = None
    for _, layouts in groupby(_layouts(resolved), key=lambda layout: layout.context):
        before = fastest
        for layout in layouts:
            found, misfit = _fitting(replace(base, ranks=layout), batch.limit_tokens)
            if misfit is not None and (nearest is None or misfit.missing < nearest.missing):
                nearest = misfit
            for trainer in found:
                gpus = layout.tensor * layout.context * layout.pipeline
                order = (_typical_batch_s(trainer, batch), gpus)
                if fastest is None or order < fastest[:2]:
                    fastest = *order, trainer
        if before is not None and fastest is before:
            break
    if fastest is not None:
        return fastest[2]
    if nearest is None:
        raise InfeasibleError(
            f"training.parallelism: no such sharding divides both {resolved.model.name} and the "
            f"{scenario.training_gpus} GPUs that train; change the ranks or cluster.gpus"
        )
    raise InfeasibleError(
        f"cluster.gpus: training {resolved.model.name} on {scenario.training_gpus} GPUs "
        f"({nearest.trainer.ranks.describe()}) lacks {format_gib(nearest.missing)} on each; "
        f"{nearest.memory.describe()} of {format_gib(hardware.device.hbm_bytes)}; give the "
        "trainer more GPUs, or lower training.micro_batch_tokens or workload.max_response_tokens"
    )


@dataclass(frozen=True, slots=True)
class _Misfit:
    """A trainer that lacks memory."""

    missing: float
    """What one GPU lacks [bytes]."""
    trainer: Trainer
    memory: TrainerMemory


def _fitting(trainer: Trainer, limit_tokens: float) -> tuple[list[Trainer], _Misfit | None]:
    """For each way of sharding, this layout with the least recomputation that fits.

    Sharding more is not tried where nothing needs to be computed again without.
    """
    training, nearest = trainer.training, None
    asked = training.parallelism.sharding
    shardings = ("optimizer", "full") if asked == "auto" else (asked,)
    kinds = _RECOMPUTE if training.recompute == "auto" else (training.recompute,)
    found: list[Trainer] = []
    for sharding in shardings:
        for recompute in kinds:
            ranks = trainer.ranks.model_copy(update={"sharding": sharding, "recompute": recompute})
            candidate = replace(trainer, ranks=ranks)
            memory = trainer_memory(candidate, limit_tokens)
            missing = memory.missing_bytes(trainer.hardware.device.hbm_bytes)
            if missing <= 0.0:
                found.append(candidate)
                break
            if nearest is None or missing < nearest.missing:
                nearest = _Misfit(missing, candidate, memory)
        if found and found[0].ranks.recompute == kinds[0]:
            break
    return found, nearest


def _typical_batch_s(trainer: Trainer, batch: _TypicalBatch) -> float:
    """Seconds of all passes over a batch of evenly dealt work [s]."""
    training = trainer.training
    mini_batch = _typical_loads(trainer, batch, batch.rollouts / training.optimizer_steps)
    update_s = update_s_of(trainer, mini_batch)
    logprob_s = logprob_pass_s(trainer, _typical_loads(trainer, batch, batch.rollouts))
    return training.optimizer_steps * update_s + training.logprob_passes * logprob_s


def _typical_loads(trainer: Trainer, batch: _TypicalBatch, rollouts: float) -> Loads:
    """An even share of the rollouts, and beside it a rank with the longest one alone."""
    window = trainer.window_tokens
    share = max(rollouts / trainer.ranks.data, 1.0)
    count = micro_batches(
        share * batch.mean_tokens, batch.longest_tokens, trainer.training.micro_batch_tokens
    )
    mean = even(share, batch.mean_tokens, count, window)
    alone = even(1.0, batch.longest_tokens, count, window)
    return Loads(
        np.concatenate([mean.tokens, alone.tokens]),
        np.concatenate([mean.pairs, alone.pairs]),
        np.concatenate([mean.windowed_pairs, alone.windowed_pairs]),
        count,
    )


def _layouts(resolved: ResolvedScenario) -> Iterator[TrainerParallelism]:
    """Ranks that divide GPUs and model, those with fewest context ranks first."""
    training, model = resolved.scenario.training, resolved.model
    asked, gpus = training.parallelism, resolved.scenario.training_gpus
    inside = min(resolved.profile.network.scale_up_gpus, _MOST_TENSOR_RANKS, gpus)
    heads = model.attention.num_heads
    tensors = [n for n in _ranks(asked.tensor, _powers(inside)) if heads % n == 0]
    stages = _ranks(asked.pipeline, _powers(min(_MOST_STAGES, model.num_layers, gpus)))
    contexts = _ranks(asked.context, _powers(min(_MOST_CONTEXT_RANKS, gpus)))
    for context, tensor, pipeline in product(contexts, tensors, stages):
        data, rest = divmod(gpus, context * tensor * pipeline)
        if rest or not data or asked.data not in ("auto", data) or pipeline > model.num_layers:
            continue
        for expert in _ranks(asked.expert, _powers(gpus // pipeline)):
            if _divides(expert, model, gpus // pipeline):
                yield TrainerParallelism(
                    tensor=tensor,
                    context=context,
                    pipeline=pipeline,
                    virtual_pipeline=asked.virtual_pipeline if pipeline > 1 else 1,
                    expert=expert,
                    data=data,
                )


def _divides(expert: int, model: ModelSpec, stage_gpus: int) -> bool:
    """Whether experts can be divided so many ways among the GPUs of a stage."""
    count = 1 if model.experts is None else model.experts.num_experts
    return count % expert == 0 and stage_gpus % expert == 0


def _ranks(asked: Ranks, choices: list[int]) -> list[int]:
    return choices if asked == "auto" else [asked]


def _powers(limit: int) -> list[int]:
    return [2**exponent for exponent in range(max(limit, 1).bit_length())]
