"""One published measurement, what rollcast projects for it, and whether anything was fitted on it.

Rows live under ``scenarios/published/<source>/``, each with its source. A row is ``fitted`` if any
coefficient has seen it, else ``validation``; the rule that decides is written in the README beside
the rows, and never looks at the error.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from simulator.data_root import data_root

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["fitted", "validation"]


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement and its projection, in one unit."""

    source: str
    """Folder of the measurement under ``scenarios/published``."""
    case: str
    """What was measured, such as ``Llama-3.1-70B fp8 TP4 on h100_sxm, 64 requests``."""
    metric: str
    """Quantity with its unit, such as ``tpot_s``."""
    published: float
    projected: float
    sigma: float
    """Standard deviation of log(measured / modelled), as projections state it [1]."""
    role: Role

    @property
    def relative_error(self) -> float:
        """``projected / published - 1`` [1]."""
        return self.projected / self.published - 1.0

    @property
    def is_inside(self) -> bool:
        """Whether the published value lies in the projection's 95% interval."""
        return abs(math.log(self.published / self.projected)) <= 1.96 * self.sigma

    def to_json(self) -> dict[str, str | float | bool]:
        """The fields by name, with the error and the verdict."""
        return {
            "source": self.source,
            "case": self.case,
            "metric": self.metric,
            "published": self.published,
            "projected": self.projected,
            "relative_error": self.relative_error,
            "is_inside_interval": self.is_inside,
            "role": self.role,
        }


def published_folder(source: str) -> Path:
    """Folder of one source's measurements."""
    return data_root() / "scenarios" / "published" / source


@cache
def published_rows(source: str, file: str) -> "pd.DataFrame":
    """Rows of one committed file; do not change them in place."""
    import pandas as pd

    return pd.read_csv(published_folder(source) / file)


def roles(cases: "list[Case]") -> "Iterator[tuple[str, str, Role, list[Case]]]":
    """Cases grouped by source, metric and role, in the order in which they come."""
    groups: dict[tuple[str, str, Role], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.source, case.metric, case.role), []).append(case)
    for (source, metric, role), members in groups.items():
        yield source, metric, role, members
