"""A scenario together with the documents that it names, ready to be priced."""

from dataclasses import dataclass

from simulator.specs.hardware import HardwareProfile
from simulator.specs.model import ModelSpec
from simulator.specs.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """A scenario and the files behind its names."""

    scenario: Scenario
    model: ModelSpec
    profile: HardwareProfile
    draft_model: ModelSpec | None = None
    """Only for speculation with an independent draft model."""
