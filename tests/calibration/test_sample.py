"""Shipped profiles against a committed sample of measured rows, and refits of that sample."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulator.calibration import calibrate
from simulator.calibration.attention import fit_decode, fit_prefill
from simulator.calibration.messages import fit_all_reduce
from simulator.calibration.products import fit_gemm, fit_moe
from simulator.calibration.profile import read_datasheet, write_profile
from simulator.calibration.report import error_table, provenances
from simulator.costs.attention import decode_attention_s, prefill_attention_s
from simulator.costs.collectives import all_reduce_s
from simulator.costs.experts import moe_s
from simulator.costs.operators import gemm_s
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile, profile_names

DATA = Path(__file__).parent / "data"
GPUS = ("gb200", "h100_sxm")


def sample(name, **chosen):
    rows = pd.read_csv(DATA / f"{name}.csv")
    for column, value in chosen.items():
        rows = rows[rows[column] == value]
    return rows.reset_index(drop=True)


def errors(predicted, rows):
    return np.abs(predicted / rows["seconds"].to_numpy() - 1.0)


def columns(rows, *names):
    return [rows[name].to_numpy() for name in names]


def assert_holds_out(error, origin):
    """As good on the sample as the profile says it is on shapes it never saw, with some slack."""
    assert np.median(error) < 1.5 * origin.heldout_median_error + 0.01
    assert np.quantile(error, 0.9) < 1.5 * origin.heldout_p90_error + 0.02


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("precision", ["bf16", "fp8_block"])
def test_shipped_products_fit_the_sample(gpu, precision):
    profile = find_profile(gpu)
    rows = sample("gemm", gpu=gpu, precision=precision)
    predicted = gemm_s(profile, precision, *columns(rows, "m", "n", "k"))
    assert_holds_out(errors(predicted, rows), profile.kernels.gemm[precision].provenance)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("precision", ["bf16", "fp8_block"])
def test_shipped_experts_fit_the_sample(gpu, precision):
    profile = find_profile(gpu)
    rows = sample("moe", gpu=gpu, precision=precision)
    predicted = moe_s(
        profile,
        precision,
        *columns(
            rows,
            "num_tokens",
            "hidden_size",
            "inter_size",
            "topk",
            "num_experts",
            "moe_tp_size",
            "moe_ep_size",
        ),
    )
    assert_holds_out(errors(predicted, rows), profile.kernels.moe[precision].provenance)


@pytest.mark.parametrize("gpu", GPUS)
def test_shipped_attention_fits_the_sample(gpu):
    profile = find_profile(gpu)
    rows = sample("attention", gpu=gpu, kind="generation")
    batch, step, heads, groups = columns(
        rows, "batch_size", "step", "num_heads", "num_key_value_heads"
    )
    predicted = decode_attention_s(profile, "bf16", batch, step + 1, 1, heads, groups, 128)
    assert_holds_out(errors(predicted, rows), profile.kernels.decode_attention["bf16"].provenance)
    rows = sample("attention", gpu=gpu, kind="context")
    batch, length, heads, groups = columns(
        rows, "batch_size", "isl", "num_heads", "num_key_value_heads"
    )
    predicted = prefill_attention_s(profile, "bf16", batch, length, 0, heads, groups, 128)
    assert_holds_out(errors(predicted, rows), profile.kernels.prefill_attention["bf16"].provenance)


@pytest.mark.parametrize("gpu", GPUS)
def test_shipped_all_reduces_fit_the_sample(gpu):
    profile = find_profile(gpu)
    for fit in profile.kernels.all_reduce:
        rows = sample("all_reduce", gpu=gpu, num_gpus=fit.ranks)
        error = errors(all_reduce_s(profile, rows["num_bytes"].to_numpy(), fit.ranks), rows)
        assert_holds_out(error, fit.provenance)


def test_refits_of_the_sample_agree_with_the_shipped_profile():
    profile = find_profile("h100_sxm")
    rows = sample("gemm", gpu="h100_sxm", precision="bf16")
    refit = fit_gemm(rows, "bf16", profile.device, "sample")
    assert refit.provenance.heldout_median_error < 0.12
    assert refit.memory_efficiency == pytest.approx(
        profile.kernels.gemm["bf16"].memory_efficiency, rel=0.1
    )
    rows = sample("moe", gpu="h100_sxm", precision="fp8_block")
    assert fit_moe(rows, "fp8_block", profile.device, "s").provenance.heldout_median_error < 0.2


def test_refits_of_attention_and_all_reduce_hold_out():
    profile = find_profile("gb200")
    context = sample("attention", gpu="gb200", kind="context")
    prefill = fit_prefill(context, "bf16", profile.device, "sample")
    assert prefill.provenance.heldout_median_error < 0.15
    generation = sample("attention", gpu="gb200", kind="generation")
    decode = fit_decode(generation, "bf16", profile.device, "sample", prefill)
    assert decode.provenance.heldout_median_error < 0.12
    fits = fit_all_reduce(sample("all_reduce", gpu="gb200"), "sample")
    assert [fit.ranks for fit in fits] == [2, 4]


def test_a_refit_is_deterministic():
    profile = find_profile("gb200")
    rows = sample("gemm", gpu="gb200", precision="fp8_block")
    first, second = (fit_gemm(rows, "fp8_block", profile.device, "sample") for _ in range(2))
    assert first == second


def test_too_few_rows_are_refused():
    rows = sample("gemm", gpu="gb200", precision="bf16").head(5)
    with pytest.raises(CalibrationError, match="too few"):
        fit_gemm(rows, "bf16", find_profile("gb200").device, "sample")


def test_an_unknown_gpu_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(CalibrationError, match="h100_sxm"):
        calibrate("tpu_v9", tmp_path / "x.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gpu", GPUS)
def test_a_written_profile_is_the_shipped_one_byte_for_byte(gpu, tmp_path):
    shipped = Path(__file__).parents[2] / "hardware_profiles" / f"{gpu}.yaml"
    write_profile(find_profile(gpu), tmp_path / f"{gpu}.yaml")
    assert (tmp_path / f"{gpu}.yaml").read_bytes() == shipped.read_bytes()
    assert shipped.stat().st_size < 40_000


@pytest.mark.parametrize("gpu", GPUS)
def test_the_unfitted_part_of_a_profile_is_its_datasheet(gpu):
    profile = find_profile(gpu).model_dump(mode="json", exclude={"kernels"})
    sheet = read_datasheet(gpu)
    for section, content in sheet.items():
        assert profile[section] == content


def test_every_fitted_kernel_says_where_it_comes_from():
    for gpu in profile_names():
        for name, precision, origin in provenances(find_profile(gpu)):
            assert origin.source.startswith("aiconfigurator-core"), (gpu, name, precision)
            assert origin.heldout_points > 0
            assert origin.fit_range
            assert origin.heldout_median_error < 0.15


def test_the_documented_errors_are_those_of_the_profiles():
    page = (Path(__file__).parents[2] / "docs" / "calibration.md").read_text(encoding="utf-8")
    assert error_table([find_profile(gpu) for gpu in GPUS]) in page
