"""The JSON Schema of a scenario, which editors use to complete and to check."""

from typing import Any

from simulator.specs.scenario import Scenario


def scenario_schema() -> dict[str, Any]:
    """JSON Schema of a scenario; units stand in the descriptions, in brackets."""
    schema = Scenario.model_json_schema()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "rollcast scenario",
        **{key: value for key, value in schema.items() if key != "title"},
    }
