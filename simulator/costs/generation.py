"""Seconds of one round of the engine: draft, verify (or decode), and the software around them.

A round is one iteration of the engine. With speculation it emits several tokens a sequence; what
that is worth is acceptance, and not priced here. Engine software is charged beside the kernels in
the ``measured`` mode: CPU work of a step, of each request, of each verified token, and the small
kernels between the priced ones, a fixed time a layer. Launching is overlapped with the GPU, so
launch times act as floors; beyond the captured CUDA-graph range every kernel is launched from the
CPU and the floors are much higher. There, an iteration with prompts also takes longer by a fixed
time a layer.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.costs.drafting import DraftNetwork, draft_pass_s, one_token_each
from simulator.costs.iteration import IterationShape, forward_pass, rank_batch
from simulator.costs.layers import FloatArray, Target
from simulator.specs.hardware import EngineSoftware
from simulator.specs.speculation import SpeculationMethod


def small_kernels_s(target: Target, software: EngineSoftware) -> float:
    """Kernels of one pass that no table holds: ``L layer_s + products quantise_s`` [s].

    Negative where the tables' own launches, which a graph of the whole model does not pay,
    outweigh them. Experts quantise inside their kernel.
    """
    model = target.model
    attention = 2 * model.num_layers * (target.attention_kernel == "nvfp4")
    feedforward = 2 * model.num_dense_layers
    if model.experts is not None and model.experts.num_shared_experts:
        feedforward += 2 * model.num_expert_layers
    products = attention + feedforward * (target.gemm_kernel == "nvfp4")
    return model.num_layers * software.layer_s + products * software.quantise_s


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Where the seconds of a round go, arrays of shape ``(n,)`` [s]."""

    target_s: FloatArray
    """Forward pass of the target: decode, verify or prefill."""
    draft_s: FloatArray
    """Proposing tokens."""
    software_s: FloatArray
    """Engine software that nothing hides."""

    @property
    def total_s(self) -> FloatArray:
        """Seconds of the round."""
        return self.target_s + self.draft_s + self.software_s


@dataclass(frozen=True, slots=True)
class GenerationCosts:
    """Everything that prices a round of one instance."""

    target: Target
    method: SpeculationMethod
    draft_length: int
    """Tokens proposed a round, 0 for plain decoding [tokens]."""
    drafter: DraftNetwork | None
    software: EngineSoftware | None
    """``None`` is the ideal mode: kernels only."""
    captured_tokens: int
    """CUDA-graph capture limit of one attention replica [tokens]."""

    @property
    def query_tokens(self) -> int:
        """Tokens a sequence brings to the target's pass [tokens]."""
        return self.draft_length + 1

    def round_cost(
        self,
        sequences: FloatArray,
        context_tokens: FloatArray,
        prefill_tokens: FloatArray | None = None,
        prefill_context: FloatArray | None = None,
    ) -> RoundCost:
        """Price rounds; arguments as in :class:`~simulator.costs.iteration.IterationShape`."""
        nothing = np.zeros_like(sequences)
        shape = IterationShape(
            sequences=sequences,
            context_tokens=context_tokens,
            query_tokens=self.query_tokens,
            prefill_tokens=nothing if prefill_tokens is None else prefill_tokens,
            prefill_context=nothing if prefill_context is None else prefill_context,
        )
        kernels_s = forward_pass(self.target, shape).total_s
        batch = rank_batch(self.target, shape)
        is_eager = batch.tokens > self.captured_tokens
        software = self.software
        draft_s = self._draft_s(shape, is_eager)
        if software is None:
            return RoundCost(kernels_s, draft_s, nothing)
        software_s = software.step_s + software.request_s * batch.sequences
        if self.draft_length:
            verified = batch.sequences * self.query_tokens
            software_s = (
                software_s + software.speculative_round_s + software.verify_token_s * verified
            )
        is_prompt = is_eager & (batch.prefill_tokens > 0)
        prompt_s = np.where(is_prompt, self.target.model.num_layers * software.prompt_layer_s, 0.0)
        small_s = np.where(batch.tokens > 0, small_kernels_s(self.target, software), 0.0)
        kernels_s = kernels_s + small_s + prompt_s
        target_s = np.maximum(kernels_s, np.where(is_eager, software.eager_step_s, 0.0))
        return RoundCost(target_s, draft_s, software_s)

    def _draft_s(self, shape: IterationShape, is_eager: npt.NDArray[np.bool_]) -> FloatArray:
        software = self.software
        batch = rank_batch(self.target, shape)
        if not self.draft_length:
            return np.zeros_like(batch.sequences)
        if self.drafter is None:
            if software is None:
                return np.zeros_like(batch.sequences)
            look_up_s = software.ngram_request_s + (
                software.ngram_context_token_s * batch.context_tokens
            )
            return look_up_s * batch.sequences
        floor_s: FloatArray | float = 0.0
        small_s = 0.0
        if software is not None:
            floor_s = np.where(is_eager, software.eager_draft_pass_s, software.draft_pass_s)
            small_s = small_kernels_s(self.drafter.target, software)
        verified = shape.sequences * self.query_tokens
        first_s = draft_pass_s(self.drafter, batch, verified) + small_s
        later_s = draft_pass_s(self.drafter, one_token_each(batch), shape.sequences) + small_s
        draft_s: FloatArray = np.maximum(first_s, floor_s)
        later_s = np.maximum(later_s, floor_s)
        return draft_s + (self.draft_length - 1) * later_s
