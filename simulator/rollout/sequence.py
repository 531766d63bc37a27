"""One rollout as the engine sees it: what is still to be computed and how fast it grows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sequence:
    """Where one rollout stands on a replica, in rounds (iterations) and tokens, not seconds."""

    rollout: int
    """Index inside its batch [1]."""
    batch: int
    """Training batch that the rollout belongs to [1]."""
    prefill_tokens: int
    """Tokens to compute before the next round; 0 once decoding [tokens]."""
    context_tokens: float
    """Tokens held in the KV cache when decoding (re)starts [tokens]."""
    rounds_left: int
    """Decode or verify rounds until the rollout is complete [1]."""
    tokens_per_round: float
    """Tokens that one round adds: decode tokens over rounds, so that the end is exact [tokens]."""
    has_started: bool = False
    """Whether it was admitted before, so that a return after a preemption is no new start."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What bounds the running batch of one replica (all its attention ranks together)."""

    max_sequences: int
    """Sequences that may run at once [1]."""
    max_batched_tokens: int
    """Tokens that one iteration may process [tokens]."""
    kv_tokens: float
    """Tokens that fit into the KV cache [tokens]."""
    query_tokens: int
    """Tokens that each running sequence adds to an iteration: draft length + 1 [tokens]."""
