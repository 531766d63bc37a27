"""Refits to a user's own tables: what is taken from them, what is kept, what is refused."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from simulator.calibration.own import refitted
from simulator.calibration.tables import COLUMNS
from simulator.cli.app import app
from simulator.costs.operators import gemm_s
from simulator.errors import CalibrationError, RollcastError
from simulator.specs.catalog import find_profile
from simulator.units import MILLI
from tests.calibration.test_sample import attention, sample
from tests.cli.command import rollcast

TABLE_DTYPE = {"bf16": "bfloat16", "fp8_block": "fp8_block", "fp8": "fp8"}


def in_milliseconds(rows, *dropped):
    return rows.assign(latency=rows["seconds"] / MILLI).drop(columns=["seconds", "gpu", *dropped])


def gemm_table(slower=1.0):
    rows = sample("gemm", gpu="h100_sxm", precision="bf16")
    table = in_milliseconds(rows.assign(gemm_dtype="bfloat16"), "precision", "kernel_source")
    return table.assign(latency=slower * table["latency"])


def written(folder, table, name="mine.csv"):
    table.to_csv(folder / name, index=False)
    return folder / name


def test_products_measured_twice_as_slow_cost_twice_as_much(tmp_path):
    base = find_profile("h100_sxm")
    slow = refitted(base, {"gemm": written(tmp_path, gemm_table(slower=2.0))})
    m, n, k = np.array([1.0, 64.0, 4096.0]), 4096, 4096
    ratio = gemm_s(slow, "bf16", m, n, k) / gemm_s(base, "bf16", m, n, k)
    assert np.all((ratio > 1.7) & (ratio < 2.4))


def test_only_what_the_table_holds_is_refitted(tmp_path):
    base = find_profile("h100_sxm")
    own = refitted(base, {"gemm": written(tmp_path, gemm_table())})
    assert own.kernels.gemm["fp8"] == base.kernels.gemm["fp8"]
    assert own.kernels.model_copy(update={"gemm": {}}) == base.kernels.model_copy(
        update={"gemm": {}}
    )
    origin = own.kernels.gemm["bf16"].provenance
    assert origin.source == "own measurements"
    assert origin.table == "mine.csv"
    assert origin.kernel == "mine"
    assert refitted(base, {"gemm": tmp_path / "mine.csv"}) == own


def test_attention_replaces_one_width_and_keeps_the_others(tmp_path):
    base = find_profile("gb200")
    tables = {}
    for kind in ("prefill", "decode"):
        rows = attention("gb200", kind, head_dim=128).assign(kv_cache_dtype="bfloat16")
        table = in_milliseconds(rows, "kind", "kv", "kernel_source")
        tables[f"{kind}_attention"] = written(tmp_path, table, f"{kind}.csv")
    kernels = refitted(base, tables).kernels
    for fits, shipped in (
        (kernels.prefill_attention, base.kernels.prefill_attention),
        (kernels.decode_attention, base.kernels.decode_attention),
    ):
        assert fits["fp8"] == shipped["fp8"]
        assert fits["bf16"].head_dim == 128
        assert fits["bf16"].provenance.source == "own measurements"
        assert fits["bf16"].other_widths == shipped["bf16"].other_widths


def test_a_new_width_joins_the_known_ones(tmp_path):
    rows = attention("gb200", "prefill", head_dim=128).assign(
        kv_cache_dtype="bfloat16", head_dim=96
    )
    path = written(tmp_path, in_milliseconds(rows, "kind", "kv"))
    fit = refitted(find_profile("gb200"), {"prefill_attention": path}).kernels.prefill_attention
    assert [other.head_dim for other in fit["bf16"].other_widths] == [64, 256, 96]
    assert fit["bf16"].of_width(100).head_dim == 96


def test_experts_latents_and_all_reduces_can_be_refitted(tmp_path):
    base = find_profile("h100_sxm")
    moe = sample("moe", gpu="h100_sxm", precision="bf16").assign(
        moe_dtype="bfloat16", distribution="power_law_1.01"
    )
    tables = {"moe": written(tmp_path, in_milliseconds(moe, "precision"), "moe.csv")}
    for kind in ("latent_prefill", "latent_decode"):
        rows = attention("h100_sxm", kind).assign(kv_cache_dtype="bfloat16")
        table = in_milliseconds(rows, "kind", "kv")
        tables[f"{kind}_attention"] = written(tmp_path, table, f"{kind}.csv")
    reduce = sample("all_reduce", gpu="h100_sxm", num_gpus=4)
    reduce = in_milliseconds(reduce.assign(message_size=reduce["num_bytes"] / 2), "num_bytes")
    tables["all_reduce"] = written(tmp_path, reduce, "reduce.csv")
    kernels = refitted(base, tables).kernels
    own = "own measurements"
    assert kernels.moe["bf16"].provenance.source == own
    assert kernels.latent_prefill_attention["bf16"].provenance.source == own
    assert kernels.latent_decode_attention["bf16"].provenance.source == own
    assert {fit.ranks: fit.provenance.source == own for fit in kernels.all_reduce} == {
        2: False,
        4: True,
        8: False,
    }
    shipped = {fit.ranks: fit.bytes_per_s for fit in base.kernels.all_reduce}
    refit = {fit.ranks: fit.bytes_per_s for fit in kernels.all_reduce}
    assert refit[4] == pytest.approx(shipped[4], rel=0.1)


BAD_TABLES = {
    "missing columns": (lambda t: t.drop(columns=["m", "latency"]), ["m, latency", "gemm_dtype"]),
    "no rows": (lambda t: t.head(0), ["no rows"]),
    "a hole": (lambda t: t.assign(latency=t["latency"].where(t.index != 3)), [":5: latency"]),
    "negative": (lambda t: t.assign(latency=-t["latency"]), [":2: latency", "above 0"]),
    "infinite": (lambda t: t.assign(latency=np.inf), [":2: latency", "above 0"]),
    "zero rows of a product": (lambda t: t.assign(m=0), [":2: m is 0", "above 0"]),
    "words": (lambda t: t.assign(n="wide"), ["n is wide", "number"]),
    "unknown precision": (lambda t: t.assign(gemm_dtype="int3"), ["int3", "bfloat16", "nvfp4"]),
    "too few rows": (lambda t: t.head(8), ["too few", "gemm"]),
    "one shape": (lambda t: t.assign(n=4096, k=4096), ["too few"]),
}


@pytest.mark.parametrize("spoil", BAD_TABLES)
def test_bad_tables_are_refused_with_the_file_and_the_reason(spoil, tmp_path):
    change, words = BAD_TABLES[spoil]
    path = written(tmp_path, change(gemm_table()))
    with pytest.raises(CalibrationError) as caught:
        refitted(find_profile("h100_sxm"), {"gemm": path})
    message = str(caught.value)
    assert str(path) in message
    assert all(word in message for word in words), message


def test_what_is_no_table_is_refused(tmp_path):
    profile = find_profile("h100_sxm")
    with pytest.raises(CalibrationError, match="known are all_reduce, decode_attention"):
        refitted(profile, {"gem": tmp_path / "x.csv"})
    with pytest.raises(CalibrationError, match="cannot be read"):
        refitted(profile, {"gemm": tmp_path / "absent.csv"})
    with pytest.raises(CalibrationError, match=r"\.csv file"):
        refitted(profile, {"gemm": tmp_path / "table.parquet"})
    (tmp_path / "binary.csv").write_bytes(b"\x00\xff\xfe" * 100)
    with pytest.raises(CalibrationError, match=r"binary\.csv"):
        refitted(profile, {"gemm": tmp_path / "binary.csv"})
    (tmp_path / "empty.csv").touch()
    with pytest.raises(CalibrationError, match="cannot be read"):
        refitted(profile, {"gemm": tmp_path / "empty.csv"})


@pytest.mark.parametrize("operator", COLUMNS)
def test_every_operator_says_which_columns_it_needs(operator, tmp_path):
    path = written(tmp_path, pd.DataFrame({"latency": [1.0]}))
    with pytest.raises(CalibrationError, match=COLUMNS[operator][0]):
        refitted(find_profile("h100_sxm"), {operator: path})


def test_a_cache_precision_that_the_gpu_lacks_is_refused(tmp_path):
    rows = attention("h100_sxm", "prefill", "fp8", head_dim=128).assign(kv_cache_dtype="fp8")
    path = written(tmp_path, in_milliseconds(rows, "kind", "kv"))
    with pytest.raises(CalibrationError, match="a100_sxm has no fp8 cache"):
        refitted(find_profile("a100_sxm"), {"prefill_attention": path})


def test_the_command_writes_a_profile_of_own_measurements(tmp_path):
    table = written(tmp_path, gemm_table())
    output = tmp_path / "lab.yaml"
    done = CliRunner().invoke(
        app,
        ["calibrate", "--gpu", "h100_sxm", "--table", f"gemm={table}", "--output", str(output)],
    )
    assert done.exit_code == 0, done.output
    assert "| gemm | bf16 |" in done.stdout
    profile = find_profile(str(output))
    assert profile.name == "lab"
    assert profile.kernels.gemm["bf16"].provenance.source == "own measurements"
    assert str(tmp_path) not in output.read_text(encoding="utf-8")


BAD_CALLS = {
    "nothing to fit": ([], ["--gpu", "--all"]),
    "unknown gpu": (["--gpu", "tpu"], ["tpu", "h200_sxm"]),
    "unknown back end": (["--gpu", "h200_sxm", "--backend", "max"], ["max", "sglang"]),
    "table without output": (["--gpu", "h200_sxm", "--table", "gemm=x.csv"], ["--output"]),
    "table of nothing": (
        ["--gpu", "h200_sxm", "--table", "gemm", "-o", "x.yaml"],
        ["OP=FILE.csv", "gemm"],
    ),
    "one and all": (["--gpu", "h200_sxm", "--all"], ["--gpu", "--all", "exclude"]),
    "absent folder": (["--gpu", "h20_sxm", "-o", "absent/x.yaml"], ["absent", "exist"]),
    "plots of a scaled profile": (
        ["--gpu", "h20_sxm", "-o", "{tmp}/x.yaml", "--plots", "{tmp}"],
        ["h20_sxm", "scaled"],
    ),
}


@pytest.mark.parametrize("call", BAD_CALLS)
def test_bad_calls_say_what_is_allowed(call, tmp_path):
    arguments, words = BAD_CALLS[call]
    arguments = [text.replace("{tmp}", str(tmp_path)) for text in arguments]
    error = CliRunner().invoke(app, ["calibrate", *arguments]).exception
    assert isinstance(error, RollcastError)
    assert all(word in str(error) for word in words), error


def test_a_bad_call_ends_in_one_line():
    done = rollcast("calibrate", "--gpu", "tpu")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no tables of tpu on vllm; known are a100_sxm, ")
    assert done.stderr.count("\n") == 1
