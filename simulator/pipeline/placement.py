"""How instances are laid on the GPUs: every ``auto`` decided, every misfit refused with numbers.

``auto`` picks the sharding whose *plain* baseline generates fastest within memory; speculation then
uses the same one, as an engineer would who switches it on.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from simulator.costs.drafting import DraftNetwork, draft_network
from simulator.costs.fit_range import LargestLoad, departures
from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import Target
from simulator.costs.memory import GenerationMemory, generation_memory
from simulator.errors import InfeasibleError
from simulator.rollout.sequence import BatchLimits
from simulator.specs.model import ModelSpec
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.scenario import Scenario
from simulator.units import format_gib

_UNLIMITED = 2**40


@dataclass(frozen=True, slots=True)
class Placement:
    """Instances of one scenario: sharding, memory and prices."""

    parallelism: EngineParallelism
    replicas: int
    """Instances that generate side by side [1]."""
    memory: GenerationMemory
    costs: GenerationCosts
    limits: BatchLimits

    def departures(
        self, largest_batch: int, longest_tokens: float, prompt_tokens: float
    ) -> tuple[str, ...]:
        """Kernels whose fitted range a run leaves, given its largest batch and longest sequence."""
        target = self.costs.target
        load = LargestLoad(
            sequences=float(largest_batch),
            query_tokens=self.costs.query_tokens,
            batched_tokens=self.limits.max_batched_tokens / target.parallelism.data,
            context_tokens=longest_tokens,
            prompt_tokens=prompt_tokens,
        )
        return departures(target, load)


def place(resolved: ResolvedScenario, parallelism: EngineParallelism) -> Placement:
    """Lay instances of this sharding on the generation GPUs.

    Raises
    ------
    InfeasibleError
        If the instances do not divide the GPUs, or a sequence does not fit into memory.
    """
    scenario = resolved.scenario
    replicas, rest = divmod(scenario.generation_gpus, parallelism.gpus)
    if rest or replicas == 0:
        raise InfeasibleError(
            f"an instance of {parallelism.gpus} GPUs ({parallelism.describe()}) does not divide "
            f"the {scenario.generation_gpus} GPUs that generate"
        )
    target = _target(resolved, parallelism)
    drafter = draft_network(scenario.speculation, target, resolved.draft_model)
    typical = float(
        scenario.workload.prompts.typical_lengths(101).mean()
        + scenario.workload.responses.typical_lengths(101).mean()
    )
    memory = generation_memory(target, drafter, scenario.engine, typical)
    _refuse_what_does_not_fit(scenario, memory, parallelism)
    return Placement(
        parallelism=parallelism,
        replicas=replicas,
        memory=memory,
        costs=_costs(resolved, target, drafter),
        limits=_limits(scenario, memory, parallelism),
    )


def candidates(resolved: ResolvedScenario, max_gpus: int) -> Iterator[EngineParallelism]:
    """Shardings of up to ``max_gpus`` GPUs that the scenario leaves open.

    Yields only shardings that divide the GPUs and the model; memory is not looked at.
    """
    scenario, model = resolved.scenario, resolved.model
    engine = scenario.engine
    for tensor in _ranks(engine.tensor_parallel, _tensor_choices(model, max_gpus)):
        for data in _ranks(engine.data_parallel, _data_choices(model, max_gpus // tensor)):
            for expert in _ranks(engine.expert_parallel, _expert_choices(model, tensor, data)):
                ranks = tensor * data
                is_whole = (
                    ranks % expert == 0
                    and scenario.generation_gpus % (ranks * engine.pipeline_parallel) == 0
                )
                if is_whole:
                    yield EngineParallelism(
                        tensor=tensor,
                        data=data,
                        pipeline=engine.pipeline_parallel,
                        expert=expert,
                        drafter_tensor=_drafter_ranks(resolved, tensor),
                    )


def _ranks(setting: int | str, choices: list[int]) -> list[int]:
    return [setting] if isinstance(setting, int) else choices


def _powers_of_two(limit: int) -> list[int]:
    return [2**exponent for exponent in range(max(limit, 1).bit_length())]


def _tensor_choices(model: ModelSpec, max_gpus: int) -> list[int]:
    heads = model.attention.num_heads
    return [ranks for ranks in _powers_of_two(min(heads, max_gpus)) if heads % ranks == 0]


def _data_choices(model: ModelSpec, limit: int) -> list[int]:
    """Attention replicas in one instance are only worth having where they share experts."""
    return _powers_of_two(limit) if model.is_moe else [1]


def _expert_choices(model: ModelSpec, tensor: int, data: int) -> list[int]:
    experts = model.experts
    if experts is None:
        return [1]
    ranks = tensor * data
    fits = ranks <= experts.num_experts and experts.num_experts % ranks == 0
    choices = [ranks] if fits else []
    return choices + ([1] if data == 1 and ranks > 1 else [])


def _drafter_ranks(resolved: ResolvedScenario, tensor: int) -> int:
    wanted = resolved.scenario.speculation.drafter.tensor_parallel
    if wanted == "auto":
        draft = resolved.draft_model
        return tensor if draft is None else math.gcd(tensor, draft.attention.num_heads)
    if tensor % wanted:
        raise InfeasibleError(
            f"speculation.drafter.tensor_parallel: {wanted} must divide the engine's "
            f"tensor_parallel, here {tensor}"
        )
    return wanted


def _target(resolved: ResolvedScenario, parallelism: EngineParallelism) -> Target:
    engine = resolved.scenario.engine
    profile = resolved.profile
    return Target(
        model=resolved.model,
        profile=profile.ideal() if engine.software == "ideal" else profile,
        parallelism=parallelism,
        precision=engine.precision,
        kv_precision=engine.kv_precision,
    )


def _costs(
    resolved: ResolvedScenario, target: Target, drafter: DraftNetwork | None
) -> GenerationCosts:
    engine, speculation = resolved.scenario.engine, resolved.scenario.speculation
    is_ideal = engine.software == "ideal"
    software = resolved.profile.software.scheduled(engine.async_scheduling)
    return GenerationCosts(
        target=target,
        method=speculation.method,
        draft_length=speculation.active_draft_length,
        drafter=drafter,
        software=None if is_ideal else software,
        captured_tokens=_UNLIMITED
        if is_ideal
        else (engine.captured_tokens or software.captured_tokens),
    )


def _limits(
    scenario: Scenario, memory: GenerationMemory, parallelism: EngineParallelism
) -> BatchLimits:
    engine = scenario.engine
    query_tokens = scenario.speculation.active_draft_length + 1
    # What decodes takes its tokens from the same budget as prompts do.
    most = max(engine.max_num_batched_tokens // query_tokens, 1) * parallelism.pipeline
    if engine.max_num_seqs is not None:
        most = min(most, engine.max_num_seqs)
    return BatchLimits(
        max_sequences=most * parallelism.data,
        max_batched_tokens=engine.max_num_batched_tokens * parallelism.data * parallelism.pipeline,
        kv_tokens=memory.kv_tokens,
        query_tokens=query_tokens,
    )


def _refuse_what_does_not_fit(
    scenario: Scenario, memory: GenerationMemory, parallelism: EngineParallelism
) -> None:
    workload = scenario.workload
    longest = workload.max_response_tokens + float(workload.prompts.typical_lengths(1000).max())
    missing = memory.missing_bytes(longest)
    if missing > 0:
        raise InfeasibleError(
            f"{scenario.model} does not fit on {parallelism.gpus} x {scenario.cluster.hardware} "
            f"({parallelism.describe()}, {scenario.engine.precision}): each GPU lacks "
            f"{format_gib(missing)} for the KV cache of one sequence of {longest:.0f} tokens; "
            f"{memory.describe()}"
        )
