"""When the next batch may start to generate: the barrier, and the bounded lag.

One rule covers both. Batch ``b`` is trained by update ``b``; if it starts when ``v`` updates are
done, its first tokens are ``b - v`` updates old when they are trained. A bound of 0 is the barrier
of synchronous RL.
"""

from pydantic import Field

from simulator.base import FrozenModel


class BoundedLag(FrozenModel):
    """Start a batch only if it cannot become too old, and not too many at once."""

    max_policy_lag: int = Field(ge=0)
    """Updates that a batch's first weights may be behind the policy that it trains [steps]."""
    max_open_batches: int = Field(gt=0)
    """Batches that may be in generation at once [1]."""

    def may_start(self, batch: int, version: int, open_batches: int) -> bool:
        """Whether ``batch`` may start at this weight version with so many others unfinished."""
        return batch - version <= self.max_policy_lag and open_batches < self.max_open_batches
