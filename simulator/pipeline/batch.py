"""The rollouts of one step: drawn once, whatever engine runs them.

Lengths come from streams that do not know about speculation, so a scenario and its baseline
generate the same answers; only the rounds they take differ.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from simulator.policies.acceptance import verify_rounds
from simulator.rollout.sequence import Sequence
from simulator.specs.scenario import Scenario
from simulator.streams import Purpose, Streams

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """Rollouts of one step, arrays of shape ``(rollouts,)``."""

    step: int
    """Step that trains this batch [1]."""
    prompt: IntArray
    """Which prompt each rollout answers [1]."""
    prompt_tokens: IntArray
    """Prompt length [tokens]."""
    response_tokens: IntArray
    """Response length after the limit [tokens]."""
    is_clipped: npt.NDArray[np.bool_]
    """Whether the limit cut the response."""
    rounds: IntArray
    """Decode or verify rounds after the prefill, which gives the first token [1]."""

    @property
    def size(self) -> int:
        """Rollouts in the batch [1]."""
        return int(self.response_tokens.size)

    @property
    def sequence_tokens(self) -> IntArray:
        """Prompt and response together, shape ``(rollouts,)`` [tokens]."""
        return self.prompt_tokens + self.response_tokens


def draw_batch(scenario: Scenario, streams: Streams, step: int) -> RolloutBatch:
    """Draw the rollouts of a step from its own base variates."""
    workload = scenario.workload
    prompts, samples = workload.prompts_per_step, workload.samples_per_prompt
    count = prompts * samples
    prompt = np.repeat(np.arange(prompts), samples)
    prompt_tokens = workload.prompts.length_tokens(
        streams.normal(Purpose.PROMPT_LENGTH, step, prompts)
    )[prompt]
    shared = streams.normal(Purpose.RESPONSE_LENGTH_PROMPT, step, prompts)[prompt]
    own = streams.normal(Purpose.RESPONSE_LENGTH_SAMPLE, step, count)
    score = workload.group.mix(shared, own)
    response_tokens = workload.responses.length_tokens(score)
    return RolloutBatch(
        step=step,
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        is_clipped=workload.responses.is_clipped(score),
        rounds=_rounds(scenario, streams, step, response_tokens - 1),
    )


def _rounds(scenario: Scenario, streams: Streams, step: int, decode_tokens: IntArray) -> IntArray:
    speculation = scenario.speculation
    draft_length = speculation.active_draft_length
    if draft_length == 0:
        return decode_tokens
    count = decode_tokens.size
    law = speculation.law
    lengths = law.request_lengths(
        streams.normal(Purpose.ACCEPTANCE_REQUEST, step, count), draft_length
    )
    return verify_rounds(
        decode_tokens,
        lengths,
        law.second_moments(lengths, draft_length),
        streams.normal(Purpose.ACCEPTANCE_ROUNDS, step, count),
        draft_length,
    )


def split_among_replicas(
    batch: RolloutBatch, replicas: int, shares_prefill: bool
) -> list[list[Sequence]]:
    """Deal the batch out in contiguous, equal parts, so that groups stay together.

    With ``shares_prefill`` only the first answer of a group on a replica computes the prompt; the
    others find it in the cache and compute its last token.
    """
    prompt = batch.prompt.tolist()
    prompt_tokens = batch.prompt_tokens.tolist()
    rounds = batch.rounds.tolist()
    growth = ((batch.response_tokens - 1) / np.maximum(batch.rounds, 1)).tolist()
    bounds = [batch.size * part // replicas for part in range(replicas + 1)]
    parts: list[list[Sequence]] = []
    for first, last in pairwise(bounds):
        part: list[Sequence] = []
        previous = -1
        for index in range(first, last):
            is_cached = shares_prefill and prompt[index] == previous
            previous = prompt[index]
            part.append(
                Sequence(
                    rollout=index,
                    batch=batch.step,
                    prefill_tokens=1 if is_cached else prompt_tokens[index],
                    context_tokens=float(prompt_tokens[index] + 1),
                    rounds_left=rounds[index],
                    tokens_per_round=growth[index],
                )
            )
        parts.append(part)
    return parts
