"""A whole calibration of tables made from the committed sample, as the package lays them out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from simulator.calibration import calibrate, plots, profile, tables
from simulator.calibration.choices import CHOICES, MessageChoice
from simulator.calibration.messages import exchange_rows as exchange_rows_of
from simulator.calibration.plots import write_plots
from simulator.calibration.report import error_table, kernel_table, provenances, summary
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile
from simulator.units import MICRO, MILLI
from tests.calibration.test_sample import attention, sample

GPU = "h100_sxm"
DTYPES = {"bf16": "bfloat16", "fp8": "fp8", "fp8_block": "fp8_block"}
KEPT = ("bf16",)


def exchange_rows():
    """Dispatch and combine of a made-up library: 100 µs, or bytes at 200 GB/s."""
    rows = pd.DataFrame({"num_tokens": 2 ** np.arange(16)}).assign(
        comm_backend="deepep_ll", ep_size=8, hidden_size=4096, topk=8, num_experts=256
    )
    moved = 2 * 2 * rows["num_tokens"] * 7 * 4096
    return rows.assign(latency=np.maximum(100e-6, moved / 200e9) / MICRO, transmit_us=0.0)


def measured_tables(choices):
    """Each table of the package that the choices name, cut down to the sample."""
    gemm = sample("gemm", gpu=GPU)
    moe = sample("moe", gpu=GPU, precision="bf16").sample(150, random_state=0)
    for precision in KEPT:
        rows = gemm[gemm["precision"] == precision].head(250).assign(gemm_dtype=DTYPES[precision])
        yield choices.gemm[precision].table, rows
    moe = moe.assign(moe_dtype=moe["precision"].map(DTYPES), distribution="power_law_1.01")
    yield choices.moe["bf16"].table, moe
    for kind, table in (
        ("prefill", choices.attention.prefill),
        ("decode", choices.attention.decode),
        ("latent_prefill", choices.latent.prefill),
        ("latent_decode", choices.latent.decode),
    ):
        rows = pd.concat(
            [attention(GPU, kind, kv).assign(kv_cache_dtype=DTYPES[kv]) for kv in ("bf16", "fp8")]
        )
        yield table, rows
    reduce = sample("all_reduce", gpu=GPU)
    yield (
        choices.all_reduce[0].table,
        reduce.assign(message_size=reduce["num_bytes"] // 2, backend="vllm_graph"),
    )


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for the installed tables, and choices that ask for no more than it has."""
    whole = CHOICES[GPU]
    choices = replace(
        whole,
        gemm={name: whole.gemm[name] for name in KEPT},
        moe={name: whole.moe[name] for name in KEPT},
        attention=replace(whole.attention, caches=("bf16",), widths=(128,)),
        latent=replace(whole.latent, caches=("bf16",)),
        exchange=MessageChoice("lender", "comm/x"),
    )
    root = tmp_path / "data"
    written = {
        f"{GPU}/{table}": rows.assign(latency=rows["seconds"] / MILLI).drop(columns="seconds")
        for table, rows in measured_tables(choices)
    }
    for name, rows in {**written, "lender/comm/x": exchange_rows()}.items():
        path = root / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.to_parquet(path)
    known = {GPU: choices}
    for module in (profile, plots):
        monkeypatch.setattr(module, "CHOICES", known)
    monkeypatch.setattr(tables, "tables_root", lambda: root)
    monkeypatch.setattr(profile, "tables_root", lambda: root)
    read = profile.read_datasheet
    monkeypatch.setattr(
        profile, "read_datasheet", lambda name: read("a100_sxm" if name == "lender" else name)
    )
    return root


def test_a_whole_profile_is_fitted_written_and_drawn(package, tmp_path):
    fitted = calibrate(GPU, tmp_path / "own.yaml")
    origins = {(name, kind): origin for name, kind, origin in provenances(fitted)}
    assert {name for name, _ in origins} >= {"gemm", "moe", "decode attention", "all-reduce"}
    assert all(origin.heldout_median_error < 0.2 for origin in origins.values())
    exchange = fitted.kernels.expert_exchange
    assert exchange.launch_s == pytest.approx(100e-6, rel=0.05)
    # The lender's links are those of an A100, 1.5 times slower than this GPU's.
    assert exchange.bytes_per_s == pytest.approx(1.5 * 200e9, rel=0.05)
    assert "measured on lender" in exchange.provenance.note

    assert find_profile(str(tmp_path / "own.yaml")) == fitted
    assert not list(tmp_path.glob(".*.tmp"))

    pictures = write_plots(fitted, tmp_path / "pictures")
    assert {path.name for path in pictures} == {
        f"{GPU}-{kind}.png"
        for kind in (
            "gemm",
            "moe",
            "prefill_attention",
            "decode_attention",
            "latent_attention",
            "messages",
        )
    }
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)

    for table in (kernel_table(fitted), error_table([fitted])):
        assert len(table.splitlines()) == len(origins) + 2
    assert f"Over the {len(origins)} classes of {GPU}" in summary([fitted])


def test_a_missing_table_is_named(package, tmp_path):
    (package / GPU / "mla/trtllm/1.3.0rc20/context_mla_perf.parquet").unlink()
    with pytest.raises(CalibrationError, match="no table mla/trtllm"):
        calibrate(GPU, tmp_path / "x.yaml")
    assert not (tmp_path / "x.yaml").exists()


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(CalibrationError, match=r"rollcast\[calibrate\]"):
        tables.tables_root()


def test_one_sided_exchanges_add_dispatch_and_combine(monkeypatch):
    """Dispatch in 4 bits and combine in 16, to at most as many ranks as there are others."""
    rows = pd.DataFrame(
        {
            "kernel_source": ["NVLinkOneSided"] * 4 + ["other"],
            "moe_ep_size": [4, 4, 16, 16, 4],
            "num_tokens": 100,
            "hidden_size": 2048,
            "topk": 8,
            "seconds": [1.0, 2.0, 3.0, 5.0, 100.0],
        }
    )
    monkeypatch.setattr("simulator.calibration.messages.read_table", lambda gpu, table: rows)
    total = exchange_rows_of(MessageChoice("gb200", "x")).sort_values("ranks")
    assert total["ranks"].tolist() == [4, 16]
    assert total["seconds"].tolist() == [3.0, 8.0]
    bytes_a_copy = 100 * 2048 * (0.5625 + 2.0)
    assert total["moved_bytes"].tolist() == [3 * bytes_a_copy, 8 * bytes_a_copy]


def test_nothing_to_summarise_is_said():
    assert "None" in summary([])
