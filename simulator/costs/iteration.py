"""Seconds of one engine iteration: one forward pass of the target for everything that runs.

A plain decode iteration has one query token a sequence, a verify iteration ``k + 1``; prompts
being computed ride along. The KV cache is read once a sequence, however many tokens query it.
"""

from dataclasses import dataclass

import numpy as np

from simulator.costs.layers import (
    FloatArray,
    RankBatch,
    Target,
    attention_projections_s,
    attention_scores_s,
    dense_feedforward_s,
    elementwise_layers_s,
    expert_layers_s,
    head_s,
    tensor_reductions_s,
)


@dataclass(frozen=True, slots=True)
class IterationShape:
    """What an instance computes in each of ``n`` iterations, arrays of shape ``(n,)``."""

    sequences: FloatArray
    """Decoding sequences of the instance [1]."""
    context_tokens: FloatArray
    """Mean context of a decoding sequence [tokens]."""
    query_tokens: int
    """New tokens of each decoding sequence: 1 for decode, draft length + 1 for verify [tokens]."""
    prefill_tokens: FloatArray
    """Prompt tokens computed beside them [tokens]."""
    prefill_context: FloatArray
    """Sum over the prompt tokens of the tokens they attend to [tokens^2]."""


@dataclass(frozen=True, slots=True)
class IterationCost:
    """Where the seconds of a forward pass go, arrays of shape ``(n,)`` [s]."""

    linear_s: FloatArray
    """Projections, dense feed-forward, head, norms."""
    attention_s: FloatArray
    """Scores over the KV cache and over prompts."""
    experts_s: FloatArray
    """Router, experts, dispatch and combine."""
    reduction_s: FloatArray
    """All-reduces of tensor parallelism, pipeline hand-overs."""

    @property
    def total_s(self) -> FloatArray:
        """Sum of all parts: they do not overlap."""
        return self.linear_s + self.attention_s + self.experts_s + self.reduction_s


def rank_batch(target: Target, shape: IterationShape) -> RankBatch:
    """The share of an instance's work that one attention replica's micro-batch holds.

    A replica that has any sequence has at least one whole sequence: splitting one among ranks is
    not possible. With pipeline stages, as many micro-batches are in flight as there are stages.
    """
    shares = target.parallelism.data * target.parallelism.pipeline
    sequences = np.maximum(shape.sequences / shares, np.minimum(shape.sequences, 1.0))
    return RankBatch(
        sequences=sequences,
        context_tokens=shape.context_tokens,
        query_tokens=shape.query_tokens,
        prefill_tokens=shape.prefill_tokens / shares,
        prefill_context=shape.prefill_context / shares,
    )


def forward_pass(target: Target, shape: IterationShape) -> IterationCost:
    """Price the forward pass of the target model.

    Every decoding token needs logits (a verify pass checks each of them); of a prompt only the
    last token does, which is left out.
    """
    batch = rank_batch(target, shape)
    tokens = batch.tokens
    stages = target.parallelism.pipeline
    instance_tokens = (shape.sequences * shape.query_tokens + shape.prefill_tokens) / stages
    rows = batch.sequences * batch.query_tokens
    return IterationCost(
        linear_s=attention_projections_s(target, tokens)
        + dense_feedforward_s(target, tokens)
        + elementwise_layers_s(target, tokens)
        + head_s(target, rows),
        attention_s=attention_scores_s(target, batch),
        experts_s=expert_layers_s(target, tokens, instance_tokens),
        reduction_s=tensor_reductions_s(target, tokens),
    )
