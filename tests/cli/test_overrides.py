"""The dotted paths that scripts rely on, and what the schema says about them."""

import json

import jsonschema
import pytest
from ruamel.yaml import YAML

from simulator.data_root import data_root
from simulator.specs.catalog import scenario_names
from simulator.specs.load import load_scenario
from simulator.specs.schema import scenario_schema
from tests.cli.command import rollcast
from tests.small_scenario import SMALL

PATHS = {
    "cluster.gpus": (8, []),
    "steps": (7, []),
    "speculation.method": ("ngram", []),
    "speculation.draft_length": (5, []),
    "speculation.acceptance_length": (3.25, []),
    "pipeline.max_policy_lag": (2, ["pipeline.placement=disaggregated"]),
    "workload.prompts_per_step": (64, []),
    "workload.samples_per_prompt": (16, []),
    "workload.max_response_tokens": (12_345, []),
    "engine.tensor_parallel": (2, []),
}


@pytest.fixture
def small_file(tmp_path):
    path = tmp_path / "small.yaml"
    YAML().dump(SMALL, path)
    return path


def value_at(document, path):
    for key in path.split("."):
        document = document[key] if isinstance(document, dict) else getattr(document, key)
    return document


def shipped(name):
    text = (data_root() / "scenarios" / f"{name}.yaml").read_text(encoding="utf-8")
    return YAML(typ="safe").load(text)


@pytest.fixture(scope="module")
def printed_schema():
    done = rollcast("schema")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", PATHS)
def test_an_override_of_the_contract_arrives(path, small_file):
    value, needed = PATHS[path]
    before = load_scenario(str(small_file), needed)
    after = load_scenario(str(small_file), [*needed, f"{path}={value}"])
    assert value_at(before, path) != value
    assert value_at(after, path) == value
    assert type(value_at(after, path)) is type(value)


@pytest.mark.parametrize("path", PATHS)
def test_an_override_changes_nothing_else(path, small_file):
    value, needed = PATHS[path]
    before = load_scenario(str(small_file), needed).model_dump()
    after = load_scenario(str(small_file), [*needed, f"{path}={value}"]).model_dump()
    *above, last = path.split(".")
    inner = value_at(after, ".".join(above)) if above else after
    inner[last] = value_at(before, path)
    assert after == before


def test_the_last_of_two_overrides_counts(small_file):
    assert load_scenario(str(small_file), ["steps=4", "steps=6"]).steps == 6


def test_an_override_of_a_whole_section_replaces_it(small_file):
    scenario = load_scenario(str(small_file), ["speculation={method: none}"])
    assert scenario.speculation.acceptance_length is None


def test_the_schema_is_a_valid_one(printed_schema):
    jsonschema.Draft7Validator.check_schema(printed_schema)
    assert printed_schema == scenario_schema()


@pytest.mark.parametrize("name", scenario_names())
def test_the_schema_accepts_every_shipped_scenario(printed_schema, name):
    document = shipped(name)
    assert set(document) <= set(printed_schema["properties"])
    assert not list(jsonschema.Draft7Validator(printed_schema).iter_errors(document))


@pytest.mark.parametrize(
    "mistake", [{"colour": "red"}, {"steps": 0}, {"steps": "many"}, {"cluster": {"gpus": 4}}]
)
def test_the_schema_refuses_what_the_loader_refuses(printed_schema, mistake):
    validator = jsonschema.Draft7Validator(printed_schema)
    assert validator.is_valid(SMALL)
    assert not validator.is_valid({**SMALL, **mistake})
