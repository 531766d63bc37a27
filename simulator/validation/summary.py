"""How well projections meet published measurements, by source, metric and role."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.validation.cases import Case, Role, roles


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of the cases of one source, metric and role."""

    source: str
    metric: str
    role: Role
    cases: int
    median_error: float
    """Median absolute relative error [1]."""
    p90_error: float
    """90th percentile of the same [1]."""
    bias: float
    """Median relative error: above 0 where projections are too slow [1]."""
    inside_share: float
    """Share of published values inside the projection's 95% interval [1]."""


def summaries(cases: Sequence[Case]) -> list[Summary]:
    """One summary a source, metric and role, in the order of the cases."""
    return [
        summary_of(source, metric, role, members)
        for source, metric, role, members in roles(list(cases))
    ]


def summary_of(source: str, metric: str, role: Role, members: Sequence[Case]) -> Summary:
    """Errors of these cases, taken together."""
    errors = np.array([case.relative_error for case in members])
    return Summary(
        source=source,
        metric=metric,
        role=role,
        cases=len(members),
        median_error=float(np.median(np.abs(errors))),
        p90_error=float(np.quantile(np.abs(errors), 0.9)),
        bias=float(np.median(errors)),
        inside_share=float(np.mean([case.is_inside for case in members])),
    )
