"""What all tests share: markers set by the folder, and how Hypothesis searches."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

MARKER_OF_FOLDER = {"benchmarks": "benchmark", "packaging": "slow"}

# Both without a deadline: a busy machine is no defect. In CI the examples never change.
settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            folder = item.path.relative_to(here).parts[0]
            if folder in MARKER_OF_FOLDER:
                item.add_marker(MARKER_OF_FOLDER[folder])
