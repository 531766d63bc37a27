"""A loop with linear prices and made-up batches, small enough to reason about."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from simulator.costs.training import TrainingCost
from simulator.pipeline.batch import RolloutBatch
from simulator.pipeline.world import LoopSettings, World
from simulator.policies.synchrony import BoundedLag
from simulator.rollout.sequence import BatchLimits
from tests.rollout.linear_table import LinearCosts, LinearTable


@dataclass(frozen=True)
class ConstantStages:
    """The same seconds in every step."""

    data_s: float = 0.0
    reward_s: float = 0.0
    prepare_s: float = 0.0
    logprob_s: float = 0.0
    training_s: float = 0.0

    def training(self, batch):
        return TrainingCost(self.logprob_s, self.training_s)


def constant_batch(rollouts=8, response=101, prompt=10):
    """Every rollout alike, in groups of four."""

    def source(step):
        return RolloutBatch(
            step=step,
            prompt=np.arange(rollouts) // 4,
            prompt_tokens=np.full(rollouts, prompt),
            response_tokens=np.full(rollouts, response),
            is_clipped=np.zeros(rollouts, dtype=bool),
            rounds=np.full(rollouts, response - 1),
        )

    return source


def random_batch(seed, rollouts=12):
    """Lengths from 1 to 60 tokens, the same for a step whenever it is asked."""

    def source(step):
        lengths = np.random.default_rng([seed, step]).integers(1, 60, rollouts)
        return RolloutBatch(
            step=step,
            prompt=np.arange(rollouts) // 4,
            prompt_tokens=np.full(rollouts, 7),
            response_tokens=lengths,
            is_clipped=np.zeros(rollouts, dtype=bool),
            rounds=lengths - 1,
        )

    return source


def run_world(
    source,
    stages,
    *,
    steps=5,
    lag=0,
    open_batches=None,
    replicas=2,
    max_sequences=10**9,
    costs=None,
):
    """Run the loop and return its recorder."""
    placement = SimpleNamespace(replicas=replicas, limits=BatchLimits(max_sequences, 8192, 1e15, 1))
    settings = LoopSettings(
        steps=steps,
        synchrony=BoundedLag(max_policy_lag=lag, max_open_batches=open_batches or lag + 1),
        shares_prefill=True,
    )
    return World(placement, LinearTable(costs or LinearCosts()), stages, source, settings).run()
