"""All sources of published measurements, by name."""

from collections.abc import Callable, Mapping, Sequence

from simulator.errors import ScenarioError
from simulator.validation import serving, verify
from simulator.validation.cases import Case
from simulator.validation.training import megatron_cases, torchtitan_cases
from simulator.validation.weight_sync import weight_sync_cases

SOURCES: Mapping[str, Callable[[], list[Case]]] = {
    "megatron": megatron_cases,
    "torchtitan": torchtitan_cases,
    "weight_sync": weight_sync_cases,
    serving.SOURCE: serving.serving_cases,
    verify.SOURCE: verify.verify_cases,
}
"""Function that projects every row of a source, by its folder under ``scenarios/published``."""


def validation_cases(sources: Sequence[str] = ()) -> list[Case]:
    """Project every published measurement of these sources; default: of all.

    Raises
    ------
    ScenarioError
        If a source is unknown.
    """
    unknown = [name for name in sources if name not in SOURCES]
    if unknown:
        raise ScenarioError(
            f"no published measurements are called {', '.join(unknown)}; "
            f"known are {', '.join(SOURCES)}"
        )
    return [case for name in sources or SOURCES for case in SOURCES[name]()]
