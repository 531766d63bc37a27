"""A price table in which everything is linear, so that closed forms are exact."""

from dataclasses import dataclass

import numpy as np

from simulator.costs.generation import RoundCost


@dataclass(frozen=True)
class LinearCosts:
    """``a + b * sequences + c * sequences * context + p * prompt tokens`` seconds a round."""

    fixed_s: float = 1e-3
    sequence_s: float = 1e-5
    token_s: float = 1e-9
    prompt_token_s: float = 1e-6

    def round_cost(self, sequences, context_tokens, prefill_tokens=None, prefill_context=None):
        prompts = np.zeros_like(sequences) if prefill_tokens is None else prefill_tokens
        total = (
            self.fixed_s
            + self.sequence_s * sequences
            + self.token_s * sequences * context_tokens
            + self.prompt_token_s * prompts
        )
        return RoundCost(total, np.zeros_like(total), np.zeros_like(total))


@dataclass(frozen=True)
class LinearTable:
    """What a replica needs of a price table."""

    costs: LinearCosts = LinearCosts()

    def round_s(self, sequences, context_tokens):
        return self.costs.round_cost(sequences, context_tokens).total_s

    def draft_and_software_s(self, sequences, context_tokens):
        nothing = np.zeros_like(sequences)
        return nothing, nothing
