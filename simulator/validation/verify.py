"""Verify passes and speculative rounds that others measured: ``scenarios/published/verify``.

``forward.csv`` holds forward passes on A100 of one and of several tokens a sequence; nothing was
fitted on them. ``rounds.csv`` holds vLLM with EAGLE-3 on H100 for one request; the engine's numbers
of a round and of a draft pass were fitted on its speculative rows.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from simulator.costs.drafting import DraftNetwork, draft_network
from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import FloatArray, Target
from simulator.specs.catalog import find_model, find_profile, profile_names
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.speculation import Speculation
from simulator.units import KILO
from simulator.validation.cases import Case, Role, published_rows
from simulator.validation.uncertainty import kernel_sigma, log_spread

Row = Mapping[Hashable, Any]
"""One row of a file, by column."""

SOURCE = "verify"
FORWARD_METRIC = "forward_s"
DECODE_METRIC = "decode_forward_s"
ROUND_METRIC = "round_s"
SHARED_CACHE_SEQUENCES = 32
"""From this batch and ``SHARED_CACHE_CONTEXT`` on, the A100 runs let prompts share their cache:
they are faster than reading every sequence's own, and are left out [1]."""
SHARED_CACHE_CONTEXT = 2_048


def verify_cases() -> list[Case]:
    """Every row that a shipped profile can price."""
    return [*_forward_cases(), *_round_cases()]


def forward_costs(model: str, gpu: str, query_tokens: int) -> GenerationCosts:
    """Passes of this many tokens a sequence on one GPU in 16 bits, graphs always captured."""
    profile = find_profile(gpu)
    return GenerationCosts(
        target=Target(find_model(model), profile, EngineParallelism(tensor=1), "bf16", "bf16"),
        method="ngram" if query_tokens > 1 else "none",
        draft_length=query_tokens - 1,
        drafter=None,
        software=profile.software,
        captured_tokens=2**40,
    )


def round_rows() -> Iterator[tuple[Row, GenerationCosts]]:
    """Rows of ``rounds.csv`` and what prices a round of each; the engine schedules in turns."""
    rows = published_rows(SOURCE, "rounds.csv")
    for row in rows[rows["gpu"].isin(profile_names())].to_dict("records"):
        profile = find_profile(row["gpu"])
        target = Target(
            find_model(row["model"]), profile, EngineParallelism(tensor=1), "bf16", "bf16"
        )
        yield (
            row,
            GenerationCosts(
                target=target,
                method=row["method"],
                draft_length=int(row["draft_length"]),
                drafter=_drafter(row, target),
                software=profile.software.scheduled(is_ahead=False),
                captured_tokens=profile.software.captured_tokens,
            ),
        )


def measured_round_s(row: Row) -> float:
    """Seconds of a round: time per token times the tokens that a round emits [s]."""
    return float(row["tpot_ms"]) * float(row["acceptance_length"]) / KILO


def _drafter(row: Row, target: Target) -> DraftNetwork | None:
    speculation = Speculation(
        method=row["method"],
        draft_length=int(row["draft_length"]),
        acceptance_length=float(row["acceptance_length"]),
    )
    return draft_network(speculation, target, None)


def _forward_cases() -> Iterator[Case]:
    rows = published_rows(SOURCE, "forward.csv")
    is_shared = (rows["sequences"] >= SHARED_CACHE_SEQUENCES) & (
        rows["context_tokens"] >= SHARED_CACHE_CONTEXT
    )
    kept = rows[~is_shared & rows["gpu"].isin(profile_names())]
    for row in kept.to_dict("records"):
        query = int(row["query_tokens"])
        costs = forward_costs(row["model"], row["gpu"], query)
        sequences, context = _shape(row)
        yield Case(
            source=SOURCE,
            case=(
                f"{row['model']} {row['precision']} on {row['gpu']}, {query} tokens a sequence, "
                f"{row['sequences']} sequences of {row['context_tokens']} tokens"
            ),
            metric=FORWARD_METRIC if query > 1 else DECODE_METRIC,
            published=float(row["forward_ms"]) / KILO,
            projected=float(costs.round_cost(sequences, context).target_s[0]),
            sigma=_sigma(costs.target, sequences, context, query),
            role="validation",
        )


def _round_cases() -> Iterator[Case]:
    priced = [(row, costs, _round_s(row, costs)) for row, costs in round_rows()]
    logs = [
        np.log(measured_round_s(row) / seconds)
        for row, costs, seconds in priced
        if costs.draft_length
    ]
    fitted_sigma = log_spread(np.asarray(logs)) if logs else 0.0
    for row, costs, seconds in priced:
        role: Role = "fitted" if costs.draft_length else "validation"
        sequences, context = _shape(row)
        kernels = _sigma(costs.target, sequences, context, costs.query_tokens)
        yield Case(
            source=SOURCE,
            case=(
                f"{row['model']} on {row['gpu']}, {row['method']} {row['draft_length']}, 1 request"
            ),
            metric=ROUND_METRIC,
            published=measured_round_s(row),
            projected=seconds,
            sigma=float(np.hypot(kernels, fitted_sigma)),
            role=role,
        )


def _round_s(row: Row, costs: GenerationCosts) -> float:
    return float(costs.round_cost(*_shape(row)).total_s[0])


def _shape(row: Row) -> tuple[FloatArray, FloatArray]:
    return np.array([row["sequences"]], dtype=np.float64), np.array(
        [row["context_tokens"]], dtype=np.float64
    )


def _sigma(target: Target, sequences: FloatArray, context: FloatArray, query: int) -> float:
    return float(kernel_sigma(target, sequences, context, query)[0])
