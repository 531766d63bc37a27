"""A scenario from a file and overrides, every mistake answered in one line.

An override is ``dotted.path=value`` with the value in YAML; it replaces what the file says, or adds
it. A baseline is a set of overrides inside the scenario; it is checked when the scenario is read.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue, ValidationError

from simulator.errors import ScenarioError
from simulator.specs.catalog import find_file
from simulator.specs.document import Document, MalformedError, parse_yaml, read_mapping
from simulator.specs.problems import KeyPath, dotted, first_problem, models_at, unknown_key
from simulator.specs.scenario import OverrideValue, Scenario

_PATH = re.compile(r"^[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*$")


def load_scenario(reference: str, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario by name or path and apply overrides.

    Parameters
    ----------
    reference
        A name under ``scenarios/`` or a path to a YAML file.
    overrides
        ``dotted.path=value`` each, applied in order.

    Raises
    ------
    ScenarioError
        If anything is not as it must be: one line that names file or override, key and remedy.
    """
    path = find_file("scenarios", reference)
    label = _label(path)
    value, document = read_mapping(path, label)
    origins: dict[KeyPath, str] = {}
    for text in overrides:
        keys, new = parse_override(text)
        _set(value, keys, new, f"--set {text}")
        origins[keys] = f"--set {text}"
    scenario = _validated(value, label, document, origins)
    if scenario.baseline is not None:
        try:
            baseline_of(scenario)
        except ScenarioError as error:
            raise ScenarioError(
                f"{_origin(('baseline',), label, document, origins)}: baseline: {error}"
            ) from error
    return scenario


def parse_override(text: str) -> tuple[KeyPath, JsonValue]:
    """``dotted.path=value`` as a path and plain data.

    Raises
    ------
    ScenarioError
        If it has no ``=``, no path, or a value that is not YAML.
    """
    path, equals, value = text.partition("=")
    if not equals or not _PATH.match(path.strip()):
        raise ScenarioError(f"--set {text}: write dotted.path=value, such as cluster.gpus=256")
    try:
        parsed = parse_yaml(value).value
    except MalformedError as error:
        raise ScenarioError(f"--set {text}: {error.problem}") from error
    return tuple(path.strip().split(".")), parsed


def with_overrides(scenario: Scenario, overrides: Mapping[str, OverrideValue]) -> Scenario:
    """A scenario with some values replaced, and without a baseline.

    Raises
    ------
    ScenarioError
        If a path does not exist or a value is not allowed.
    """
    value: dict[str, JsonValue] = scenario.model_dump(mode="json", exclude_unset=True)
    value.pop("baseline", None)
    for path, new in overrides.items():
        if not _PATH.match(path):
            raise ScenarioError(f"{path}: write a dotted path, such as speculation.method")
        _set(value, tuple(path.split(".")), new if not isinstance(new, list) else [*new], "")
    try:
        return Scenario.model_validate(value)
    except ValidationError as error:
        raise ScenarioError(first_problem(error, Scenario)[1]) from error


def baseline_of(scenario: Scenario) -> Scenario | None:
    """What a scenario is compared with, or ``None``.

    Raises
    ------
    ScenarioError
        If an override of the baseline is not allowed.
    """
    if scenario.baseline is None:
        return None
    return with_overrides(scenario, scenario.baseline)


def _set(value: dict[str, JsonValue], path: KeyPath, new: JsonValue, label: str) -> None:
    """Replace or add the value at a path, refusing keys that no scenario has."""
    if not models_at(Scenario, path[:-1]) or not _is_field(path):
        sentence = f"{dotted(path)}: {unknown_key(Scenario, _longest_known(path))}"
        raise ScenarioError(f"{label}: {sentence}" if label else sentence)
    at = value
    for part in path[:-1]:
        inner = at.get(str(part))
        if not isinstance(inner, dict):
            inner = {}
            at[str(part)] = inner
        at = inner
    at[str(path[-1])] = new


def _is_field(path: KeyPath) -> bool:
    return any(path[-1] in found.model_fields for found in models_at(Scenario, path[:-1]))


def _longest_known(path: KeyPath) -> KeyPath:
    """The path up to and including its first unknown part."""
    for length in range(1, len(path) + 1):
        if not _is_field(path[:length]):
            return path[:length]
    return path


def _validated(
    value: JsonValue, label: str, document: Document, origins: Mapping[KeyPath, str]
) -> Scenario:
    try:
        return Scenario.model_validate(value)
    except ValidationError as error:
        path, sentence = first_problem(error, Scenario)
        raise ScenarioError(f"{_origin(path, label, document, origins)}: {sentence}") from error


def _origin(path: KeyPath, label: str, document: Document, origins: Mapping[KeyPath, str]) -> str:
    """The override that a value came from, else its line in the file."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    below = [text for key, text in origins.items() if key[: len(path)] == path]
    return below[-1] if below else f"{label}:{document.line(path)}"


def _label(path: Path) -> str:
    """How a file is named in messages: relative to where the user stands, if below."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
