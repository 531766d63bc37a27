"""Shipped profiles against a committed sample of measured rows, and refits of that sample."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from simulator.calibration import calibrate
from simulator.calibration.attention import (
    decode_compute,
    fit_decode,
    fit_prefill,
    predicted_decode,
    predicted_prefill,
)
from simulator.calibration.choices import TableChoice
from simulator.calibration.messages import fit_all_reduce
from simulator.calibration.products import fit_gemm, fit_moe, moe_rows
from simulator.costs.collectives import all_reduce_s
from simulator.costs.experts import moe_s
from simulator.costs.operators import gemm_s
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile

DATA = Path(__file__).parent / "data"
GPUS = ("gb200", "h100_sxm")


def sample(name, **chosen):
    rows = pd.read_csv(DATA / f"{name}.csv")
    for column, value in chosen.items():
        rows = rows[rows[column] == value]
    return rows.reset_index(drop=True)


def attention(gpu, kind, kv="bf16", **chosen):
    rows = sample("attention", gpu=gpu, kind=kind, kv=kv, **chosen)
    return rows.dropna(axis="columns").assign(kernel_source="sample")


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
@pytest.mark.parametrize("kv", ["bf16", "fp8"])
@pytest.mark.parametrize("head_dim", [64, 128])
def test_shipped_attention_fits_the_sample(gpu, kv, head_dim):
    profile = find_profile(gpu)
    decode = profile.kernels.decode_attention[kv].of_width(head_dim)
    assert decode.head_dim == head_dim
    rows = attention(gpu, "decode", kv, head_dim=head_dim)
    assert (rows["window_size"] > 0).any()
    error = errors(predicted_decode(decode, kv, profile.device, rows), rows)
    assert_holds_out(error, decode.provenance)
    prefill = profile.kernels.prefill_attention[kv].of_width(head_dim)
    rows = attention(gpu, "prefill", kv, head_dim=head_dim)
    assert (rows["window_size"] > 0).any()
    error = errors(predicted_prefill(prefill, kv, profile.device, rows), rows)
    assert_holds_out(error, prefill.provenance)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kv", ["bf16", "fp8"])
def test_shipped_latent_attention_fits_the_sample(gpu, kv):
    profile = find_profile(gpu)
    decode = profile.kernels.latent_decode_attention[kv]
    rows = attention(gpu, "latent_decode", kv)
    error = errors(predicted_decode(decode, kv, profile.device, rows), rows)
    assert_holds_out(error, decode.provenance)
    prefill = profile.kernels.latent_prefill_attention[kv]
    rows = attention(gpu, "latent_prefill", kv)
    error = errors(predicted_prefill(prefill, kv, profile.device, rows), rows)
    assert_holds_out(error, prefill.provenance)


@pytest.mark.parametrize("gpu", GPUS)
def test_shipped_all_reduces_fit_the_sample(gpu):
    profile = find_profile(gpu)
    rows = sample("all_reduce", gpu=gpu)
    for ranks, some in rows.groupby("num_gpus"):
        assert ranks in {fit.ranks for fit in profile.kernels.all_reduce}
        error = errors(all_reduce_s(profile, some["num_bytes"].to_numpy(), ranks), some)
        # Seven held-out rows say little: the bounds are those of all GPUs and ranks together.
        assert np.median(error) < 0.08
        assert np.quantile(error, 0.9) < 0.25


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


def test_shapes_that_were_not_routed_as_told_are_left_out(monkeypatch):
    """Even routing cannot take longer than skewed routing on the most loaded rank."""
    skewed = sample("moe", gpu="h100_sxm", precision="bf16")
    skewed = skewed[skewed["num_tokens"] >= 1024].assign(
        moe_dtype="bfloat16", distribution="power_law_1.01"
    )
    widest = skewed["hidden_size"].max()
    slower = np.where(skewed["hidden_size"] == widest, 1.3, 0.9)
    even = skewed.assign(distribution="balanced", seconds=skewed["seconds"] * slower)
    table = pd.concat([skewed, even])
    monkeypatch.setattr("simulator.calibration.products.read_table", lambda *_: table)
    kept = moe_rows("h100_sxm", TableChoice("moe", "bfloat16", "triton"))
    assert 0 < len(kept) == (skewed["hidden_size"] != widest).sum()
    assert set(kept["distribution"]) == {"power_law_1.01"}


def test_refits_of_attention_and_all_reduce_hold_out():
    profile = find_profile("gb200")
    rows = attention("gb200", "prefill", head_dim=128)
    prefill = fit_prefill(rows, "bf16", profile.device, "sample")
    assert prefill.provenance.heldout_median_error < 0.12
    shipped = profile.kernels.prefill_attention["bf16"]
    assert prefill.compute_efficiency == pytest.approx(shipped.compute_efficiency, rel=0.2)
    rows = attention("gb200", "decode", head_dim=128)
    decode = fit_decode(rows, "bf16", profile.device, "sample", prefill.compute_efficiency)
    assert decode.provenance.heldout_median_error < 0.12
    assert decode.compute_efficiency == prefill.compute_efficiency
    fits = fit_all_reduce(sample("all_reduce", gpu="gb200"), "sample")
    assert [fit.ranks for fit in fits] == [2, 4]


def test_latents_identify_the_compute_coefficient_over_a_cache():
    """A free coefficient comes out below the cap of 0.8, and near that of prompts."""
    kernels = find_profile("h100_sxm").kernels
    latent = kernels.latent_decode_attention["bf16"], kernels.latent_prefill_attention["bf16"]
    assert 0.5 < latent[0].compute_efficiency < 0.79
    assert latent[0].compute_efficiency > latent[1].compute_efficiency
    prefill = kernels.prefill_attention["bf16"]
    assert decode_compute(prefill, *latent) == prefill.compute_efficiency
    slow = latent[0].model_copy(update={"compute_efficiency": 0.25 * latent[1].compute_efficiency})
    assert decode_compute(prefill, slow, latent[1]) == pytest.approx(
        0.25 * prefill.compute_efficiency
    )


def test_heads_of_several_widths_are_not_fitted_together():
    rows = attention("gb200", "prefill")
    with pytest.raises(CalibrationError, match="one width"):
        fit_prefill(rows, "bf16", find_profile("gb200").device, "sample")


def test_a_refit_is_deterministic():
    profile = find_profile("gb200")
    rows = sample("gemm", gpu="gb200", precision="fp8_block")
    first, second = (fit_gemm(rows, "fp8_block", profile.device, "sample") for _ in range(2))
    assert first == second


def test_too_few_rows_are_refused():
    rows = sample("gemm", gpu="gb200", precision="bf16").head(5)
    with pytest.raises(CalibrationError, match="too few"):
        fit_gemm(rows, "bf16", find_profile("gb200").device, "sample")
    with pytest.raises(CalibrationError, match="too few"):
        fit_gemm(rows.head(0), "bf16", find_profile("gb200").device, "sample")


def test_an_unknown_gpu_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(CalibrationError, match="h100_sxm"):
        calibrate("tpu_v9", tmp_path / "x.yaml")
    assert list(tmp_path.iterdir()) == []
