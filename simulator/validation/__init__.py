"""Published measurements beside what rollcast projects for them: :func:`validation_cases`."""

from simulator.validation.cases import Case, Role
from simulator.validation.sources import SOURCES, validation_cases

__all__ = ["SOURCES", "Case", "Role", "validation_cases"]
