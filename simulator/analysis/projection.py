"""The answer to a scenario: replications run, averaged, compared with the baseline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simulator.analysis.arm import Arm, Averaging, simulate_arm
from simulator.analysis.model_error import (
    rollout_speedup_sigma,
    step_speedup_sigma,
    widened,
)
from simulator.results.estimates import Estimate, estimate_ratio
from simulator.specs.catalog import resolve
from simulator.specs.load import baseline_of
from simulator.specs.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]
"""Called with replications done and replications in all."""

SPEEDUPS = ("rollout_speedup", "end_to_end_speedup")


@dataclass(frozen=True, slots=True)
class Projection:
    """What a scenario costs, with its baseline's projection if it names one."""

    scenario: Scenario
    phases_s: Mapping[str, Estimate]
    """Seconds of each phase of a step, ``generation`` at its own pace among them [s]."""
    estimates: Mapping[str, Estimate]
    """Everything else that is estimated, by the name it has in the JSON."""
    facts: Mapping[str, str]
    """What was decided or counted, for a reader."""
    warnings: tuple[str, ...]
    """Where the projection leaves firm ground."""
    tables: Mapping[str, "pd.DataFrame"] = field(repr=False)
    """``steps``, ``rollouts`` and ``batch``, with units in the column names."""
    baseline: "Projection | None" = None

    def to_json(self) -> dict[str, Any]:
        """The contract of ``rollcast run --json``."""
        estimates = {name: value.to_json() for name, value in self.estimates.items()}
        return {
            "scenario": self.scenario.name,
            "seeds": self.scenario.seeds,
            "step_time_s": estimates["step_time_s"],
            "phases_s": {name: value.to_json() for name, value in self.phases_s.items()},
            "tokens_per_s_per_gpu": estimates["tokens_per_s_per_gpu"],
            "generation_share": estimates["generation_share"],
            "mean_response_tokens": estimates["mean_response_tokens"],
            "mean_policy_lag": estimates["mean_policy_lag"],
            **{name: estimates.get(name) for name in SPEEDUPS},
            "warnings": list(self.warnings),
            "facts": dict(self.facts),
            "baseline": self.baseline.to_json() if self.baseline else None,
        }


def project(scenario: Scenario, *, progress: Progress | None = None) -> Projection:
    """Simulate a scenario and its baseline over common random numbers.

    Raises
    ------
    ScenarioError
        If a named model or profile does not exist.
    InfeasibleError
        If the model does not fit the GPUs.
    """
    reference = baseline_of(scenario)
    arms = 1 if reference is None else 2
    total = arms * scenario.seeds
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    if reference is None:
        return _projection(simulate_arm(resolve(scenario), Averaging.over(scenario), tick), None)
    averaging = Averaging.over(scenario, reference)
    base = simulate_arm(resolve(reference), averaging, tick)
    return _projection(simulate_arm(resolve(scenario), averaging, tick), base)


def _projection(arm: Arm, base: Arm | None) -> Projection:
    estimates = dict(arm.estimates())
    if base is not None:
        estimates |= _speedups(arm, base)
    return Projection(
        scenario=arm.scenario,
        phases_s=arm.phases(),
        estimates=estimates,
        facts=arm.facts(),
        warnings=arm.warnings(),
        tables=arm.tables(),
        baseline=None if base is None else _projection(base, None),
    )


def _speedups(arm: Arm, base: Arm) -> dict[str, Estimate]:
    mine, theirs = arm.scenario, base.scenario
    shares_engine = (mine.model, mine.cluster, mine.engine, mine.generation_gpus) == (
        theirs.model,
        theirs.cluster,
        theirs.engine,
        theirs.generation_gpus,
    )
    shares_trainer = (mine.model, mine.cluster, mine.training) == (
        theirs.model,
        theirs.cluster,
        theirs.training,
    )
    rollout = estimate_ratio(base.generation_blocks_s, arm.generation_blocks_s)
    step = estimate_ratio(base.step_blocks_s, arm.step_blocks_s)
    return {
        "rollout_speedup": widened(
            rollout, rollout_speedup_sigma(base.shares, arm.shares, shares_engine=shares_engine)
        ),
        "end_to_end_speedup": widened(
            step,
            step_speedup_sigma(
                base.shares,
                arm.shares,
                shares_engine=shares_engine,
                shares_trainer=shares_trainer,
            ),
        ),
    }
