"""Documents by name: scenarios, models and hardware profiles, shipped or the user's own.

A reference is a name under the data folders or a path to a file. Nothing here decides anything; a
name that does not exist is answered with the nearest ones that do.
"""

import json
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from simulator.data_root import data_root
from simulator.errors import ScenarioError
from simulator.specs.document import read_bounded, read_mapping
from simulator.specs.hardware import HardwareProfile
from simulator.specs.huggingface import model_from_config
from simulator.specs.model import ModelSpec
from simulator.specs.problems import first_problem
from simulator.specs.resolved import ResolvedScenario
from simulator.specs.scenario import Scenario

_SUFFIXES = {"scenarios": ".yaml", "hardware_profiles": ".yaml", "workloads/models": ".json"}
_VOCABULARY_PADDING = 0.02
_COMMANDS = {
    "scenarios": "rollcast scenarios",
    "hardware_profiles": "rollcast profiles",
    "workloads/models": "rollcast models",
}


def scenario_names() -> list[str]:
    """Names of the shipped scenarios, folders as in ``systems/name``."""
    return _names("scenarios")


def profile_names() -> list[str]:
    """Names of the shipped hardware profiles."""
    return _names("hardware_profiles")


def model_names() -> list[str]:
    """Names of the shipped models."""
    return _names("workloads/models")


def find_file(folder: str, reference: str) -> Path:
    """File behind a name in a data folder, or behind a path.

    Raises
    ------
    ScenarioError
        If there is neither.
    """
    suffix = _SUFFIXES[folder]
    path = Path(reference)
    if path.suffix in {".yaml", ".yml", ".json"} or path.exists():
        if folder != "workloads/models" or not path.is_dir():
            return path
        if not (path / "config.json").is_file():
            raise ScenarioError(f"model: the folder {reference} holds no config.json")
        return path / "config.json"
    if reference in _names(folder):
        return data_root() / folder / f"{reference}{suffix}"
    near = get_close_matches(reference, _names(folder), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    noun = {"scenarios": "scenario", "hardware_profiles": "hardware profile"}.get(folder, "model")
    raise ScenarioError(
        f"no {noun} is called {reference!r}{hint} (`{_COMMANDS[folder]}` lists all; a path to a "
        f"{suffix[1:].upper()} file works too)"
    )


def find_model(reference: str) -> ModelSpec:
    """A model by name, by path to a Hugging Face config.json, or by the folder that holds one.

    Raises
    ------
    ScenarioError
        If it does not exist, is not JSON, or cannot be priced.
    """
    return _load_model(find_file("workloads/models", reference))


def find_profile(reference: str) -> HardwareProfile:
    """A hardware profile by name or path.

    Raises
    ------
    ScenarioError
        If it does not exist or is not a profile.
    """
    return _load_profile(find_file("hardware_profiles", reference))


def resolve(scenario: Scenario) -> ResolvedScenario:
    """A scenario with the model and profile that it names.

    Raises
    ------
    ScenarioError
        If one of them does not exist, or the profile lacks a precision that is asked for.
    """
    profile = find_profile(scenario.cluster.hardware)
    draft = scenario.speculation.drafter.model
    needs_draft = scenario.speculation.method == "draft_model" and draft is not None
    _refuse_missing_precision(scenario, profile)
    model = find_model(scenario.model)
    draft_model = find_model(draft) if needs_draft and draft else None
    _refuse_unfit_drafter(scenario, model, draft_model)
    return ResolvedScenario(scenario, model, profile, draft_model)


def _refuse_unfit_drafter(
    scenario: Scenario, model: ModelSpec, draft_model: ModelSpec | None
) -> None:
    speculation = scenario.speculation
    if speculation.is_active and speculation.method == "mtp" and not model.num_mtp_layers:
        raise ScenarioError(
            f"speculation.method: {model.name} has no multi-token-prediction layers "
            "(num_nextn_predict_layers); allowed are none, eagle3, draft_model, ngram"
        )
    if draft_model is None:
        return
    # Vocabularies of one family differ by padding alone.
    if abs(draft_model.vocab_size / model.vocab_size - 1.0) > _VOCABULARY_PADDING:
        raise ScenarioError(
            f"speculation.drafter.model: {draft_model.name} has a vocabulary of "
            f"{draft_model.vocab_size} and {model.name} one of {model.vocab_size}; a draft model "
            "needs that of its target"
        )
    if draft_model.active_parameters >= model.active_parameters:
        raise ScenarioError(
            f"speculation.drafter.model: {draft_model.name} is no smaller than {model.name}; "
            "a draft model must be"
        )


def _refuse_missing_precision(scenario: Scenario, profile: HardwareProfile) -> None:
    drafter = scenario.speculation.drafter.precision
    for key, asked, known in (
        ("engine.precision", scenario.engine.precision, set(profile.kernel_choice)),
        (
            "engine.kv_precision",
            scenario.engine.kv_precision,
            set(profile.kernels.decode_attention),
        ),
        (
            "training.precision",
            scenario.training.precision,
            set(profile.training.matrix_efficiency),
        ),
        ("speculation.drafter.precision", drafter, set(profile.kernel_choice)),
    ):
        if asked is not None and asked not in known:
            raise ScenarioError(
                f"{key}: {profile.name} has no {asked}; allowed are {', '.join(sorted(known))}"
            )


def _names(folder: str) -> list[str]:
    root, suffix = data_root() / folder, _SUFFIXES[folder]
    return sorted(
        path.relative_to(root).with_suffix("").as_posix() for path in root.rglob(f"*{suffix}")
    )


@lru_cache(maxsize=64)
def _load_model(path: Path) -> ModelSpec:
    text = read_bounded(path, str(path))
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from error
    if not isinstance(config, dict):
        raise ScenarioError(f"{path}: a Hugging Face config.json is a JSON object")
    name = path.parent.name if path.name == "config.json" else path.stem
    return model_from_config(config, name or path.stem)


@lru_cache(maxsize=32)
def _load_profile(path: Path) -> HardwareProfile:
    value, document = read_mapping(path, str(path))
    try:
        return HardwareProfile.model_validate(value)
    except ValidationError as error:
        where, sentence = first_problem(error, HardwareProfile)
        raise ScenarioError(f"{path}:{document.line(where)}: {sentence}") from error
