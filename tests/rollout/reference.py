"""A replica stepped iteration by iteration: slow, obvious, and independent of the planner."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from simulator.rollout.sequence import BatchLimits, Sequence
from tests.rollout.linear_table import LinearCosts


@dataclass
class _Live:
    sequence: Sequence
    context: float
    rounds_left: int


def step_every_iteration(
    sequences: list[Sequence], limits: BatchLimits, costs: LinearCosts
) -> dict[int, float]:
    """Completion time of each rollout when nothing is ever thrown out of memory [s]."""
    waiting = deque(sequences)
    decoding: list[_Live] = []
    prefilling: deque[list] = deque()
    now, completed = 0.0, {}
    while waiting or decoding or prefilling:
        while waiting and len(decoding) + len(prefilling) < limits.max_sequences:
            sequence = waiting.popleft()
            prefilling.append([sequence, sequence.prefill_tokens])
        budget = limits.max_batched_tokens - len(decoding) * limits.query_tokens
        if not decoding:
            budget = max(budget, 1)
        prompt_tokens, ready = 0, []
        while prefilling and prompt_tokens < budget:
            chunk = min(prefilling[0][1], budget - prompt_tokens)
            prefilling[0][1] -= chunk
            prompt_tokens += chunk
            if prefilling[0][1] == 0:
                ready.append(prefilling.popleft()[0])
        count = float(len(decoding))
        context = sum(live.context for live in decoding) / count if decoding else 0.0
        cost = costs.round_cost(
            np.array([count]), np.array([context]), np.array([float(prompt_tokens)])
        )
        now += float(cost.total_s[0])
        for live in decoding:
            live.context += live.sequence.tokens_per_round
            live.rounds_left -= 1
            if live.rounds_left == 0:
                completed[live.sequence.rollout] = now
        decoding = [live for live in decoding if live.rounds_left > 0]
        for sequence in ready:
            if sequence.rounds_left == 0:
                completed[sequence.rollout] = now
            else:
                decoding.append(_Live(sequence, sequence.context_tokens, sequence.rounds_left))
    return completed
