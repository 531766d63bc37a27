"""Seconds per output token of a server under a closed loop: what serving benchmarks publish.

``B`` clients each keep one request in flight. While a request emits its ``O`` tokens, each of the
others finishes once on average and brings a new prompt of ``P`` tokens, so ``r = c (B - 1) / O``
chunks of prompts arrive in an iteration, ``c`` a prompt. They are computed beside the decoding
sequences (chunked prefill), and every request waits for them. Arrivals are taken as independent: a
share ``f = 1 - exp(-r)`` of the iterations holds prompts, ``r / f`` chunks each, and

``TPOT = t(B, C, 0) + f (t(B, C, P r / (c f)) - t(B, C, 0))``

with ``t(B, C, p)`` the seconds of an iteration of ``B`` sequences of mean context ``C = P + O / 2``
beside ``p`` prompt tokens.
"""

from dataclasses import dataclass

import numpy as np

from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import FloatArray


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A server with a fixed number of requests in flight, arrays of shape ``(n,)``."""

    concurrency: FloatArray
    """Requests in flight in the instance [1]."""
    prompt_tokens: FloatArray
    """Mean length of a prompt [tokens]."""
    output_tokens: FloatArray
    """Mean length of an answer [tokens]."""
    max_batched_tokens: float
    """Tokens that one iteration may process [tokens]."""

    @property
    def context_tokens(self) -> FloatArray:
        """Mean context of a decoding sequence [tokens]."""
        return self.prompt_tokens + self.output_tokens / 2.0

    @property
    def mixed_share(self) -> FloatArray:
        """Share of the iterations that compute prompts [1]."""
        share: FloatArray = -np.expm1(-self._arriving_chunks)
        return share

    @property
    def prefill_tokens(self) -> FloatArray:
        """Prompt tokens of such an iteration [tokens]."""
        share = self.mixed_share
        together = np.where(share > 0, self._arriving_chunks / np.where(share > 0, share, 1.0), 1.0)
        tokens: FloatArray = together * self.prompt_tokens / self._chunks
        return tokens

    @property
    def prefill_context(self) -> FloatArray:
        """Sum over them of the tokens that they attend to [tokens^2]."""
        return self.prefill_tokens * self.prompt_tokens / 2.0

    def tpot_s(self, plain_s: FloatArray, mixed_s: FloatArray) -> FloatArray:
        """Mean time between two tokens of a request, from both kinds of iteration [s]."""
        return plain_s + self.mixed_share * (mixed_s - plain_s)

    @property
    def _chunks(self) -> FloatArray:
        budget = np.maximum(self.max_batched_tokens - self.concurrency, 1.0)
        chunks: FloatArray = np.ceil(self.prompt_tokens / budget)
        return chunks

    @property
    def _arriving_chunks(self) -> FloatArray:
        return self._chunks * (self.concurrency - 1.0) / self.output_tokens


def closed_loop_tpot_s(costs: GenerationCosts, loop: ClosedLoop) -> FloatArray:
    """Time per output token of a server without speculation, shape ``(n,)`` [s]."""
    plain_s = costs.round_cost(loop.concurrency, loop.context_tokens).total_s
    mixed_s = costs.round_cost(
        loop.concurrency, loop.context_tokens, loop.prefill_tokens, loop.prefill_context
    ).total_s
    return loop.tpot_s(plain_s, mixed_s)
