"""A batch plan in seconds: when each segment of unchanged batch begins and ends."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import FloatArray
from simulator.costs.round_table import RoundTable
from simulator.rollout.batch import BatchPlan, IntArray


@dataclass(frozen=True, slots=True)
class Timeline:
    """Start and end of every segment of a plan."""

    plan: BatchPlan
    edges_s: FloatArray
    """Start of the first segment, then the end of each, shape ``(segments + 1,)`` [s]."""

    @property
    def end_s(self) -> float:
        """When the plan is done [s]."""
        return float(self.edges_s[-1])

    @property
    def completed_s(self) -> FloatArray:
        """When each completed sequence is done, in order of completion [s]."""
        return self.edges_s[self.plan.completed_after + 1]

    @property
    def admitted_s(self) -> FloatArray:
        """When each admitted sequence starts, in order of admission [s]."""
        return self.edges_s[self.plan.admitted_before]

    def iterations_until(self, time_s: float) -> tuple[int, float]:
        """Whole iterations begun by ``time_s``, and when the last of them ends [1, s].

        An engine reacts between iterations, so whatever happens at ``time_s`` takes effect at the
        returned instant.
        """
        if time_s <= self.edges_s[0]:
            return 0, float(self.edges_s[0])
        segment = int(np.searchsorted(self.edges_s, time_s, side="left")) - 1
        segment = min(segment, self.plan.iterations.size - 1)
        start, end = self.edges_s[segment], self.edges_s[segment + 1]
        count = int(self.plan.iterations[segment])
        each = (end - start) / count
        begun = min(max(int(np.ceil((time_s - start) / each - 1e-9)), 1), count)
        before = int(self.plan.iterations[:segment].sum())
        return before + begun, float(start + begun * each)


def price_plan(plan: BatchPlan, table: RoundTable, start_s: float) -> Timeline:
    """Turn a plan into seconds.

    A segment's price is the mean of two prices, one standard deviation of the context below and
    above its mean: exact for any price that is a cubic function of context. Segments with prompts
    are priced without the table.
    """
    iterations = plan.iterations.astype(np.float64)
    sequences = plan.sequences.astype(np.float64)
    low = table.round_s(sequences, plan.context_tokens - plan.context_spread)
    high = table.round_s(sequences, plan.context_tokens + plan.context_spread)
    seconds = iterations * (low + high) / 2.0
    has_prompts = plan.prefill_tokens > 0
    if has_prompts.any():
        with_prompts_s = _with_prompts(table.costs, plan, has_prompts)
        seconds[has_prompts] = iterations[has_prompts] * with_prompts_s
    edges = np.concatenate([[start_s], start_s + np.cumsum(seconds)])
    return Timeline(plan, edges)


def _with_prompts(
    costs: GenerationCosts, plan: BatchPlan, chosen: npt.NDArray[np.bool_]
) -> FloatArray:
    return costs.round_cost(
        plan.sequences[chosen].astype(np.float64),
        plan.context_tokens[chosen],
        plan.prefill_tokens[chosen].astype(np.float64),
        plan.prefill_context[chosen],
    ).total_s


def segment_starts(plan: BatchPlan) -> IntArray:
    """Iteration at which each segment begins, shape ``(segments,)`` [1]."""
    return np.cumsum(plan.iterations) - plan.iterations
