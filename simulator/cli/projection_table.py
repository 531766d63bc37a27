"""A projection as a table for people: phases, speedups, what was decided, what to beware of."""

from simulator.analysis.projection import SPEEDUPS, Projection
from simulator.cli.tables import Column, print_table
from simulator.results.estimates import Estimate

_LABELS = {
    "generation": "generation (own pace)",
    "exposed_generation": "exposed generation",
    "logprob": "log-probabilities",
    "prepare": "weight sync",
    "step_time_s": "step [s]",
    "tokens_per_s_per_gpu": "response tokens/s/GPU",
    "generation_share": "exposed generation share",
    "mean_response_tokens": "mean response [tokens]",
    "mean_policy_lag": "mean policy lag [steps]",
    "rollout_speedup": "rollout speedup",
    "end_to_end_speedup": "end-to-end speedup",
}


def print_projection(projection: Projection) -> None:
    """Print phases, speedups and facts to standard output."""
    arms = [projection] if projection.baseline is None else [projection, projection.baseline]
    scenario = projection.scenario
    columns = (
        Column("seconds a step"),
        *(
            Column(title, is_number=True)
            for title, _ in zip(("scenario", "baseline"), arms, strict=False)
        ),
    )
    rows = [
        (_label(name), *(_interval(arm.phases_s[name]) for arm in arms))
        for name in projection.phases_s
    ]
    rows += [
        (_label(name), *(_interval(arm.estimates[name]) for arm in arms))
        for name in projection.estimates
        if name not in SPEEDUPS
    ]
    title = f"{scenario.name}: steps {scenario.steps}, seeds {scenario.seeds}, 95% intervals"
    print_table(title, columns, rows)
    if projection.baseline is not None:
        changes = ", ".join(f"{key}={value}" for key, value in (scenario.baseline or {}).items())
        print_table(
            f"Against the baseline ({changes})",
            (Column("speedup"), Column("mean [95% interval]", is_number=True)),
            [(_label(name), _interval(projection.estimates[name])) for name in SPEEDUPS],
        )
    print_table(
        "What it rests on",
        (
            Column("fact"),
            *(Column(title) for title, _ in zip(("scenario", "baseline"), arms, strict=False)),
        ),
        [(fact, *(arm.facts.get(fact, "-") for arm in arms)) for fact in projection.facts],
    )


def _label(name: str) -> str:
    return _LABELS.get(name, name)


def _interval(estimate: Estimate) -> str:
    digits = 2 if abs(estimate.mean) < 100 else 1
    mean = f"{estimate.mean:,.{digits}f}"
    if estimate.low == estimate.high:
        return mean
    return f"{mean} [{estimate.low:,.{digits}f}, {estimate.high:,.{digits}f}]"
