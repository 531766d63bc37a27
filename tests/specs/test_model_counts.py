"""Counts of the shipped models against what their publishers say."""

import json
from dataclasses import dataclass

import pytest

from simulator.data_root import data_root
from simulator.specs.huggingface import model_from_config

BILLION = 10**9
TOLERANCE = 0.01


@dataclass(frozen=True)
class Published:
    """A number as printed; the last digit printed is all that is known of it."""

    billions: str
    source: str

    @property
    def value(self):
        return float(self.billions)

    @property
    def rounding(self):
        decimals = len(self.billions.partition(".")[2])
        return 0.5 * 10.0**-decimals


def card(billions, repository):
    return Published(billions, f"model card of {repository}")


def qwen3(billions):
    return Published(billions, "Qwen3 model cards; arXiv 2505.09388, tables 1 and 2")


TOTAL = {
    "Llama-3.2-1B": card("1.23", "meta-llama/Llama-3.2-1B"),
    "Llama-3.1-8B": card("8.03", "meta-llama/Llama-3.1-8B"),
    "Llama-3.1-70B": card("70.6", "meta-llama/Llama-3.1-70B"),
    "Llama-3.1-405B": card("405.9", "meta-llama/Llama-3.1-405B, size of the weights"),
    "Qwen2.5-7B": card("7.61", "Qwen/Qwen2.5-7B"),
    "Qwen2.5-32B": card("32.5", "Qwen/Qwen2.5-32B"),
    "Qwen2.5-72B": card("72.7", "Qwen/Qwen2.5-72B"),
    "Qwen3-0.6B": qwen3("0.6"),
    "Qwen3-1.7B": qwen3("1.7"),
    "Qwen3-8B": qwen3("8.2"),
    "Qwen3-14B": qwen3("14.8"),
    "Qwen3-32B": qwen3("32.8"),
    "Qwen3-30B-A3B": qwen3("30.5"),
    "Qwen3-235B-A22B": qwen3("235"),
    "DeepSeek-V3": Published("671", "arXiv 2412.19437, abstract"),
    # The report rounds to 1.04 T; the published weights add up to 1.03 T.
    "Kimi-K2": card("1030", "moonshotai/Kimi-K2-Instruct, size of the weights"),
    "Kimi-K2.5": card("1030", "moonshotai/Kimi-K2-Instruct, whose language model it is"),
    "MiniMax-M2.5": card("229", "MiniMaxAI/MiniMax-M2.5, size of the weights"),
    "gpt-oss-120b": Published("116.8", "arXiv 2508.10925, table 1: 116.83"),
}

ACTIVE = {
    "Qwen3-30B-A3B": qwen3("3.3"),
    "Qwen3-235B-A22B": qwen3("22"),
    "DeepSeek-V3": Published("37", "arXiv 2412.19437, abstract"),
    "Kimi-K2": Published("32.6", "arXiv 2507.20534, table 2"),
    "Kimi-K2.5": Published("32.6", "arXiv 2507.20534, table 2, of the same language model"),
}

ACTIVE_WITHOUT_EMBEDDING = {
    "MiniMax-M2.5": card("10", "MiniMaxAI/MiniMax-M2.5, which does not say what it counts"),
    "gpt-oss-120b": Published("5.13", "arXiv 2508.10925, table 1, which counts the head only"),
}

WITHOUT_EMBEDDINGS = {
    "Qwen2.5-7B": card("6.53", "Qwen/Qwen2.5-7B"),
    "Qwen2.5-32B": card("31.0", "Qwen/Qwen2.5-32B"),
    "Qwen2.5-72B": card("70.0", "Qwen/Qwen2.5-72B"),
    "Qwen3-0.6B": qwen3("0.44"),
    "Qwen3-1.7B": qwen3("1.4"),
    "Qwen3-8B": qwen3("6.95"),
    "Qwen3-14B": qwen3("13.2"),
    "Qwen3-32B": qwen3("31.2"),
    "Qwen3-30B-A3B": qwen3("29.9"),
    "Qwen3-235B-A22B": qwen3("234"),
}

TENSOR_ELEMENTS = {
    # Elements of all tensors in the published 16-bit weights.
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-3.1-70B": 70_553_706_496,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-32B": 32_763_876_352,
    "Qwen2.5-72B": 72_706_203_648,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-30B-A3B": 30_532_122_624,
}


def shipped(name):
    path = data_root() / "workloads" / "models" / f"{name}.json"
    return model_from_config(json.loads(path.read_text(encoding="utf-8")), name)


def assert_is_published(parameters, published):
    allowed = TOLERANCE * published.value + published.rounding
    assert abs(parameters / BILLION - published.value) <= allowed, published.source


def test_every_shipped_model_is_compared_with_a_published_count():
    files = (data_root() / "workloads" / "models").glob("*.json")
    assert {path.stem for path in files} == set(TOTAL)


@pytest.mark.parametrize("name", TOTAL)
def test_total(name):
    assert_is_published(shipped(name).parameters, TOTAL[name])


@pytest.mark.parametrize("name", ACTIVE)
def test_active(name):
    assert_is_published(shipped(name).active_parameters, ACTIVE[name])


@pytest.mark.parametrize("name", ACTIVE_WITHOUT_EMBEDDING)
def test_active_by_publishers_that_leave_the_embedding_out(name):
    model = shipped(name)
    counted = model.active_parameters - model.embedding_parameters
    assert_is_published(counted, ACTIVE_WITHOUT_EMBEDDING[name])


@pytest.mark.parametrize("name", WITHOUT_EMBEDDINGS)
def test_total_without_embedding_and_head(name):
    model = shipped(name)
    counted = model.parameters - model.embedding_parameters - model.head_parameters
    assert_is_published(counted, WITHOUT_EMBEDDINGS[name])


@pytest.mark.parametrize("name", TENSOR_ELEMENTS)
def test_total_is_exactly_the_elements_of_the_published_tensors(name):
    assert shipped(name).parameters == TENSOR_ELEMENTS[name]


@pytest.mark.parametrize("name", sorted(set(TOTAL) - set(ACTIVE) - set(ACTIVE_WITHOUT_EMBEDDING)))
def test_a_dense_model_uses_all_its_parameters(name):
    model = shipped(name)
    assert not model.is_moe
    assert model.active_parameters == model.parameters


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [
        ("Llama-3.1-8B", 2 * 8 * 128 * 2 * 32),
        ("DeepSeek-V3", 61 * 576 * 2),
        ("Kimi-K2", 61 * 576 * 2),
        ("Qwen3-30B-A3B", 2 * 4 * 128 * 2 * 48),
    ],
)
def test_kv_bytes_per_token(name, kv_bytes):
    assert shipped(name).kv_bytes_per_token("bf16") == kv_bytes


@pytest.mark.parametrize(
    ("name", "precision"),
    [("Qwen3-8B", "bf16"), ("DeepSeek-V3", "fp8"), ("Kimi-K2", "fp8"), ("gpt-oss-120b", "mxfp4")],
)
def test_native_precision(name, precision):
    assert shipped(name).native_precision == precision


def test_gpt_oss_takes_the_bytes_of_its_checkpoint():
    # arXiv 2508.10925, table 1: the checkpoint of the 120b model takes 60.8 GiB.
    assert shipped("gpt-oss-120b").weight_bytes("mxfp4") / 2**30 == pytest.approx(60.8, rel=0.01)


def test_mtp_layer_of_deepseek_v3_is_outside_the_count():
    # Its notes on the weights: 11.5 B of the MTP module are its own.
    model = shipped("DeepSeek-V3")
    assert model.mtp_parameters == pytest.approx(11.5 * BILLION, rel=TOLERANCE)


def test_parts_of_gpt_oss():
    # arXiv 2508.10925, table 1: MLP 114.71 B, attention 0.96 B, embedding and head 1.16 B.
    model = shipped("gpt-oss-120b")
    routers = model.num_layers * model.router_parameters_per_layer
    assert (model.expert_parameters + routers) / BILLION == pytest.approx(114.71, abs=0.05)
    attention = model.num_layers * model.attention_parameters_per_layer
    assert attention / BILLION == pytest.approx(0.96, abs=0.005)
    ends = model.embedding_parameters + model.head_parameters
    assert ends / BILLION == pytest.approx(1.16, abs=0.005)
    assert (model.attention.window_tokens, model.attention.windowed_layers) == (128, 18)
