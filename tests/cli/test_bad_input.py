"""Bad input: exit code 2, one line that names the key and what is allowed, no traceback."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from ruamel.yaml import YAML

from simulator.errors import RollcastError, ScenarioError
from simulator.specs.document import MalformedError, parse_yaml
from simulator.specs.load import load_scenario
from simulator.specs.problems import first_problem
from simulator.specs.scenario import Scenario
from tests.cli.command import rollcast
from tests.small_scenario import SMALL


def as_yaml(document):
    text = io.StringIO()
    YAML().dump(document, text)
    return text.getvalue()


SMALL_TEXT = as_yaml(SMALL)


@pytest.fixture
def small_file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL_TEXT, encoding="utf-8")
    return path


OVERRIDES = {
    "unknown top key": ("colour=red", ["colour", "unknown key", "allowed", "cluster"]),
    "misspelt key": ("cluster.gpu=8", ["cluster.gpu", "cluster.gpus"]),
    "misspelt nested key": ("workload.response_length.sgima=1", ["sgima", "sigma"]),
    "misspelt choice": ("speculation.method=eagle", ["speculation.method", "eagle3"]),
    "wrong kind": ("workload.response_length.kind=weibull", ["kind", "lognormal"]),
    "suffix": ("workload.max_response_tokens=32k", ["whole number of tokens", "32k"]),
    "unit in the value": ("workload.response_length.mean=4GB", ["number", "4GB"]),
    "negative": ("cluster.gpus=-1", ["cluster.gpus", "greater than 0", "-1"]),
    "negative lag": ("pipeline.max_policy_lag=-1", ["max_policy_lag", "0", "steps"]),
    "zero": ("steps=0", ["steps", "greater than 0"]),
    "fraction": ("cluster.gpus=2.5", ["cluster.gpus", "whole number"]),
    "not a number": ("workload.response_length.mean=.nan", ["mean", "finite"]),
    "infinite": ("pipeline.data_s=.inf", ["data_s", "finite"]),
    "truth value": ("cluster.gpus=true", ["cluster.gpus", "true"]),
    "list for a number": ("cluster.gpus=[1, 2]", ["cluster.gpus", "whole number"]),
    "text for a mapping": ("cluster=many", ["cluster", "mapping"]),
    "acceptance too long": ("speculation.acceptance_length=4.5", ["acceptance_length", "1 to 4"]),
    "acceptance below one": ("speculation.acceptance_length=0.5", ["acceptance_length", "1"]),
    "acceptance told twice": ("speculation.acceptance_rates=[0.5]", ["2 ways"]),
    "increasing rates": (
        "speculation={method: eagle3, draft_length: 2, acceptance_rates: [0.4, 0.5]}",
        ["never increase"],
    ),
    "lag on colocated GPUs": ("pipeline.max_policy_lag=2", ["max_policy_lag", "disaggregated"]),
    "split of colocated GPUs": ("pipeline.generation_gpus=2", ["generation_gpus", "disaggregated"]),
    "no GPU left to train": (
        "pipeline={placement: disaggregated, generation_gpus: 4}",
        ["generation_gpus", "1 to 3"],
    ),
    "draft model without a name": ("speculation.method=draft_model", ["drafter.model"]),
    "mtp without its layers": ("speculation.method=mtp", ["speculation.method", "eagle3"]),
    "draft model too large": (
        "speculation={method: draft_model, draft_length: 3, acceptance_length: 2,"
        " drafter: {model: Qwen3-32B}}",
        ["drafter.model", "no smaller"],
    ),
    "draft model of other words": (
        "speculation={method: draft_model, draft_length: 3, acceptance_length: 2,"
        " drafter: {model: Llama-3.2-1B}}",
        ["drafter.model", "vocabulary"],
    ),
    "mean far over the limit": ("workload.max_response_tokens=1", ["max_response_tokens", "limit"]),
    "baseline over other seeds": ("baseline={seeds: 3}", ["baseline", "seeds", "same draws"]),
    "folder without a config": ("model=tests", ["model", "tests", "holds no config.json"]),
    "unknown model": ("model=Qwen9-1T", ["Qwen9-1T", "rollcast models"]),
    "unknown draft model": (
        "speculation={method: draft_model, draft_length: 3, acceptance_length: 2,"
        " drafter: {model: nope}}",
        ["nope", "rollcast models"],
    ),
    "unknown profile": ("cluster.hardware=h900", ["h900", "rollcast profiles"]),
    "training in a precision of inference only": (
        "training.precision=mxfp4",
        ["training.precision", "mxfp4", "bf16"],
    ),
    "precision that the GPU lacks": (
        "{cluster.hardware=h100_sxm|engine.precision=fp4}",
        ["engine.precision", "fp4", "bf16"],
    ),
    "ranks": ("engine.tensor_parallel=wide", ["tensor_parallel", "auto"]),
    "ranks that do not divide": ("engine.tensor_parallel=3", ["3", "divide"]),
    "too few GPUs for the model": ("model=DeepSeek-V3", ["GiB"]),
    "no room for a sequence": (
        "{workload.max_response_tokens=4000000|workload.response_length.mean=100000}",
        ["GiB", "KV cache"],
    ),
    "no equals sign": ("cluster.gpus", ["dotted.path=value"]),
    "no path": ("=3", ["dotted.path=value"]),
    "empty part": ("cluster..gpus=3", ["dotted.path=value"]),
    "broken value": ("cluster.gpus=[1", ["not YAML"]),
    "path through a number": ("steps.more=1", ["steps.more"]),
    "baseline with an unknown path": ("baseline={speculation.metod: none}", ["baseline", "metod"]),
    "baseline without changes": ("baseline={}", ["baseline", "at least one"]),
}


def assert_refused(outcome, fragments):
    assert outcome.returncode == 2, outcome.stderr
    assert outcome.stdout == ""
    lines = outcome.stderr.strip().splitlines()
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("error: ")
    for fragment in fragments:
        assert fragment in lines[0]


def refusal(path, overrides):
    """What loading, resolving and placing a scenario says about it."""
    from simulator.pipeline.run import Runner
    from simulator.specs.catalog import resolve

    with pytest.raises(RollcastError) as caught:
        Runner(resolve(load_scenario(str(path), overrides)))
    return " ".join(str(caught.value).split())


@pytest.mark.parametrize("name", OVERRIDES)
def test_every_bad_override_is_refused_with_a_helpful_line(name, small_file):
    override, fragments = OVERRIDES[name]
    overrides = override[1:-1].split("|") if "|" in override else [override]
    message = refusal(small_file, overrides)
    for fragment in fragments:
        assert fragment in message


@pytest.mark.parametrize("name", ["misspelt key", "suffix", "too few GPUs for the model"])
def test_the_command_ends_with_one_line_and_code_2(name, small_file):
    override, fragments = OVERRIDES[name]
    assert_refused(rollcast("run", small_file, "--set", override), fragments)


FILES = {
    "empty": (b"", ["empty", "mapping"]),
    "comment only": (b"# nothing\n", ["empty", "mapping"]),
    "a list": (b"- 1\n- 2\n", ["mapping", "list"]),
    "a word": (b"hello\n", ["mapping"]),
    "binary": (bytes(range(256)), ["UTF-8"]),
    "not YAML": (b"a: [1, 2\nb: }", ["not YAML"]),
    "a repeated key": (b"name: a\nname: b\n", ["duplicate key name", "line 1"]),
    "an object": (b"name: !!python/object/apply:os.system ['true']\n", ["tag", "not allowed"]),
    "a directive": (b"%YAML 1.1\n---\nname: no\n", ["directives"]),
    "deep": (b"a: " + b"[" * 500 + b"]" * 500, ["levels deep"]),
    "an alias bomb": (
        b"a: &a [1,1,1,1,1,1,1,1,1]\n"
        + b"".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n".encode()
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        ["values"],
    ),
    "20 MB": (b"name: " + b"x" * 20_000_000, ["MiB"]),
}


@pytest.mark.parametrize("name", FILES)
def test_every_bad_file_is_refused_with_a_helpful_line(name, tmp_path):
    content, fragments = FILES[name]
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(str(path))
    assert "bad.yaml" in str(caught.value)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    assert_refused(rollcast("run", tmp_path / "none.yaml"), ["none.yaml", "no such file"])
    assert_refused(rollcast("run", "qwen3-235b-sync-51"), ["did you mean qwen3-235b-sync-512"])
    with pytest.raises(ScenarioError, match="folder"):
        load_scenario(str(tmp_path))


def test_mistakes_in_a_file_are_found_by_line(small_file):
    text = small_file.read_text(encoding="utf-8").replace("gpus: 4", "gpus: four")
    small_file.write_text(text, encoding="utf-8")
    line = 1 + text[: text.index("gpus: four")].count("\n")
    with pytest.raises(ScenarioError, match=rf"small.yaml:{line}: cluster.gpus"):
        load_scenario(str(small_file))


def test_bad_output_folders_are_refused_before_any_work(small_file, tmp_path):
    occupied = tmp_path / "occupied"
    occupied.write_text("", encoding="utf-8")
    assert_refused(rollcast("run", small_file, "--out", occupied), ["--out", "occupied"])


def test_bad_model_configs_are_refused(small_file, tmp_path):
    for content in ("[]", "{", '{"model_type": "llama"}', '{"hidden_size": NaN}', "nope"):
        config = tmp_path / "config.json"
        config.write_text(content, encoding="utf-8")
        assert "\n" not in refusal(small_file, [f"model={config}"])


@given(st.text(max_size=300))
def test_no_text_is_anything_but_data_or_a_malformed_document(text):
    try:
        outcome = json.dumps(parse_yaml(text).value)
    except MalformedError as error:
        outcome = error.problem
    assert outcome


@given(
    st.dictionaries(
        st.sampled_from(sorted(SMALL)),
        st.none()
        | st.integers()
        | st.text(max_size=9)
        | st.lists(st.integers(), max_size=3)
        | st.dictionaries(st.text(max_size=5), st.integers()),
        max_size=4,
    )
)
def test_no_document_is_anything_but_a_scenario_or_a_refusal(changes):
    try:
        Scenario.model_validate({**SMALL, **changes})
    except ValidationError as error:
        path, sentence = first_problem(error, Scenario)
        assert sentence
        assert isinstance(path, tuple)
