"""Every kernel price: finite, monotone, never faster than the datasheet, nothing for nothing."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator.costs.attention import (
    _mean_attended,
    decode_attention_s,
    mla_decode_attention_s,
    mla_prefill_attention_s,
    prefill_attention_s,
)
from simulator.costs.collectives import all_reduce_s, moe_all_to_all_s
from simulator.costs.experts import moe_s, moe_seconds
from simulator.costs.operators import elementwise_s, gemm_s, gemm_seconds, joined
from simulator.specs.catalog import find_profile

PROFILES = {gpu: find_profile(gpu) for gpu in ("gb200", "h100_sxm", "h20_sxm", "b200_sxm_sglang")}
ASCENDING = np.unique(np.geomspace(1, 60_000, 200).round())

profiles = st.sampled_from(sorted(PROFILES)).map(PROFILES.__getitem__)
widths = st.integers(64, 20_000)


def assert_price(seconds):
    assert np.all(np.isfinite(seconds))
    assert np.all(seconds > 0)
    assert np.all(np.diff(seconds) >= -1e-12)


@given(profiles, st.sampled_from(["bf16", "fp8", "fp8_block"]), widths, widths)
@example(PROFILES["h100_sxm"], "fp8", 12_288, 4096)
def test_products_grow_with_tokens_and_respect_the_datasheet(profile, precision, columns, depth):
    seconds = gemm_s(profile, precision, ASCENDING, columns, depth)
    assert_price(seconds)
    peak = profile.device.peak_flops_per_s["bf16" if precision == "bf16" else "fp8"]
    assert np.all(seconds >= 2 * ASCENDING * columns * depth / peak)
    width = 2 if precision == "bf16" else 1
    assert np.all(seconds >= width * columns * depth / profile.device.hbm_bytes_per_s)


@given(
    profiles,
    st.sampled_from(["bf16", "fp8"]),
    st.integers(1, 1024),
    st.integers(1, 16),
    st.integers(1, 8),
    st.integers(1, 16),
    st.sampled_from([64, 128, 256]),
)
def test_decode_attention_grows_with_context_and_reads_the_cache(
    profile, kv, batch, query, groups, group_size, width
):
    heads = groups * group_size
    seconds = decode_attention_s(profile, kv, batch, ASCENDING, query, heads, groups, width)
    assert_price(seconds)
    cache = 2 * batch * ASCENDING * groups * width * (2 if kv == "bf16" else 1)
    assert np.all(seconds >= cache / profile.device.hbm_bytes_per_s)
    more = decode_attention_s(profile, kv, batch, ASCENDING, query + 1, heads, groups, width)
    assert np.all(more >= seconds - 1e-12)
    windowed = decode_attention_s(
        profile, kv, batch, ASCENDING, query, heads, groups, width, window=128
    )
    assert_price(windowed)
    inside = ASCENDING <= 128
    assert np.array_equal(windowed[inside], seconds[inside])
    # Past the window nothing more is read, however long the context.
    assert windowed[-1] == windowed[ASCENDING > 4096][0]


@given(
    profiles,
    st.sampled_from(["bf16", "fp8"]),
    st.sampled_from([64, 128, 256]),
    st.integers(0, 30_000),
    st.integers(1, 2000),
)
def test_prompts_attend_to_a_window_or_to_everything(profile, kv, width, prefix, window):
    def seconds(span):
        return prefill_attention_s(profile, kv, 2, ASCENDING, prefix, 16, 2, width, window=span)

    whole, windowed = seconds(np.inf), seconds(window)
    assert_price(whole)
    assert_price(windowed)
    assert np.all(windowed <= whole * (1 + 1e-9))
    assert np.allclose(seconds(1e9), whole)


def test_a_window_is_attended_to_as_the_sum_over_positions_says():
    """FLOP of ``s`` tokens after ``x``, each attending to ``min(position, w)`` tokens."""
    for new, prefix, window in ((1000, 0, 128), (100, 50, 128), (500, 300, 128), (64, 0, 128)):
        mean = np.mean(np.minimum(prefix + np.arange(new) + 0.5, window))
        args = (np.float64(value) for value in (new, prefix, window))
        assert _mean_attended(*args) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("gpu", ["gb200", "h100_sxm"])
def test_heads_of_64_are_priced_by_their_own_measurements(gpu):
    """Twice the heads of half the width move the same bytes; neither costs the same."""
    profile = PROFILES[gpu]
    context = np.array([8192.0])
    narrow = decode_attention_s(profile, "bf16", 64, context, 1, 16, 2, 64)
    wide = decode_attention_s(profile, "bf16", 64, context, 1, 8, 1, 128)
    assert narrow / wide == pytest.approx(1.0, rel=0.2)
    assert narrow != wide
    narrow = prefill_attention_s(profile, "bf16", 8, 8192, 0, 16, 2, 64)
    wide = prefill_attention_s(profile, "bf16", 8, 8192, 0, 8, 1, 128)
    # The exponentials of twice as many scores take time that FLOP do not tell.
    assert 1.1 < narrow / wide < 2.0


@given(profiles, st.integers(1, 64), st.integers(1, 128), st.integers(0, 30_000))
def test_latent_and_prefill_attention_grow(profile, batch, heads, prefix):
    assert_price(mla_decode_attention_s(profile, "bf16", batch, ASCENDING, 1, heads, 512, 64))
    assert_price(prefill_attention_s(profile, "bf16", batch, ASCENDING, prefix, heads, 1, 64))
    assert_price(mla_prefill_attention_s(profile, "fp8", batch, ASCENDING, prefix, heads, 192, 128))


@given(
    profiles,
    st.sampled_from(["bf16", "fp8_block"]),
    st.sampled_from([(4096, 1536, 8, 128), (7168, 2048, 8, 256), (2048, 768, 8, 128)]),
    st.sampled_from([(1, 1), (8, 1), (1, 8), (1, 64), (2, 16)]),
)
def test_experts_grow_with_tokens_and_respect_the_peak(profile, precision, shape, ranks):
    hidden, inner, top_k, _ = shape
    tensor, expert = ranks
    seconds = moe_s(profile, precision, ASCENDING, *shape, tensor, expert)
    assert_price(seconds)
    peak = profile.device.peak_flops_per_s["bf16" if precision == "bf16" else "fp8"]
    flops = 6 * hidden * inner * top_k * ASCENDING / (tensor * expert)
    assert np.all(seconds >= flops / peak)


def test_products_pay_for_waves_of_tiles_and_not_for_idle_multiprocessors():
    profile = PROFILES["h100_sxm"]
    fit = profile.kernels.gemm["fp8"].model_copy(
        update={"tiles": "by_rows", "wave_share": 1.0, "quantise_passes": 0.0, "launch_s": 0.0}
    )
    endless_bytes_per_s = 1e30
    one, many, more = (
        gemm_seconds(fit, "fp8", 1.979e15, endless_bytes_per_s, 132, 256, columns, 1024)
        for columns in (128, 66 * 128, 67 * 128)
    )
    assert many == pytest.approx(one)  # 132 tiles run side by side
    assert more == pytest.approx(2.0 * one)  # two more wait for another wave


def test_splitting_the_depth_shortens_a_narrow_product():
    profile = PROFILES["h100_sxm"]
    fit = profile.kernels.gemm["bf16"]
    whole = profile.model_copy(
        update={
            "kernels": profile.kernels.model_copy(
                update={"gemm": {"bf16": fit.model_copy(update={"split_s": None})}}
            )
        }
    )
    rows, depth = np.array([16.0]), 16_384
    assert gemm_s(profile, "bf16", rows, 256, depth) < 0.7 * gemm_s(whole, "bf16", rows, 256, depth)


@pytest.mark.parametrize(
    ("gpu", "precision"), [("h100_sxm", "mxfp4"), ("gb200", "mxfp4"), ("gb200", "mxfp4_mxfp8")]
)
def test_experts_in_mxfp4_read_four_bits_a_weight(gpu, precision):
    profile = PROFILES[gpu]
    seconds = moe_s(profile, precision, ASCENDING, 2880, 2880, 4, 128, 1, 1)
    assert_price(seconds)
    weights_s = 3 * 2880 * 2880 * 128 * 0.53125 / profile.device.hbm_bytes_per_s
    assert np.all(seconds[ASCENDING > 4096] > weights_s)
    peak = profile.device.peak_flops_per_s["bf16" if precision == "mxfp4" else "fp8"]
    assert np.all(seconds >= 6 * 2880 * 2880 * 4 * ASCENDING / peak)


def test_an_imbalance_of_zero_is_even_routing():
    """What each of many ranks does for all tokens is what a single one does for its share."""
    profile = PROFILES["gb200"]
    fit = profile.kernels.moe["nvfp4"].model_copy(
        update={"imbalance": 0.0, "group_traffic": 0.0, "sorting_s": 0.0}
    )
    rates = (profile.device.peak_flops_per_s["fp4"], profile.device.hbm_bytes_per_s)
    shape = (4096, 1536, 8)
    ranks = np.array([1.0, 2.0, 4.0, 16.0])
    divided = moe_seconds(fit, "nvfp4", *rates, 512 * ranks, *shape, 8 * ranks, 1, ranks)
    assert divided == pytest.approx(np.full(4, divided[0]), rel=1e-9)
    skewed = fit.model_copy(update={"imbalance": 1.0})
    more = moe_seconds(skewed, "nvfp4", *rates, 512 * ranks, *shape, 8 * ranks, 1, ranks)
    assert more[0] == divided[0]
    assert np.all(np.diff(more) > 0)


def test_divided_experts_run_their_own_kernel():
    profile = PROFILES["h100_sxm"]
    fit = profile.kernels.moe["fp8_block"]
    assert fit.divided is not None
    rates = (profile.device.peak_flops_per_s["fp8"], profile.device.hbm_bytes_per_s)
    both = moe_seconds(fit, "fp8_block", *rates, 64, 4096, 1536, 8, 128, 1, np.array([1, 8]))
    alone = [
        moe_seconds(one, "fp8_block", *rates, 64, 4096, 1536, 8, 128, 1, ranks)
        for one, ranks in ((fit.model_copy(update={"divided": None}), 1), (fit.divided, 8))
    ]
    assert both == pytest.approx(np.array(alone))
    ideal = fit.ideal()
    assert (ideal.launch_s, ideal.imbalance) == (0.0, 0.0)
    assert ideal.divided is not None
    assert (ideal.divided.launch_s, ideal.divided.imbalance) == (0.0, 0.0)


def test_one_token_costs_less_than_all_experts():
    profile = PROFILES["h100_sxm"]
    few, many = moe_s(profile, "bf16", np.array([1.0, 512.0]), 4096, 1536, 8, 128, 1, 1)
    all_weights_s = 3 * 4096 * 1536 * 128 * 2 / profile.device.hbm_bytes_per_s
    assert few < 0.3 * all_weights_s
    assert many > 0.8 * all_weights_s


@given(profiles, st.sampled_from([2, 3, 4, 8, 16, 64, 72, 128, 512]))
def test_collectives_grow_with_bytes_and_ranks(profile, ranks):
    sizes = ASCENDING * 1000
    assert_price(all_reduce_s(profile, sizes, ranks))
    if ranks >= 8:  # measured all-reduces of fewer ranks do not always grow
        more = all_reduce_s(profile, sizes, 2 * ranks)
        assert np.all(more >= all_reduce_s(profile, sizes, ranks))
    assert_price(moe_all_to_all_s(profile, ASCENDING, 4096, 8, ranks, 1.5))


def test_leaving_the_nvlink_domain_costs_more_than_the_network_needs():
    profile = PROFILES["h100_sxm"]
    num_bytes = np.array([1e8])
    inside, outside = (all_reduce_s(profile, num_bytes, ranks)[0] for ranks in (8, 16))
    across = 1e8 / 8 / profile.network.scale_out_bytes_per_s
    assert outside - inside == pytest.approx(across + 5e-6, rel=1e-6)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_no_work_takes_no_time(profile):
    nothing = np.zeros(2)
    assert not gemm_s(profile, "bf16", nothing, 128, 128).any()
    assert not decode_attention_s(profile, "bf16", nothing, 100, 1, 8, 1, 128).any()
    assert not prefill_attention_s(profile, "bf16", nothing, 100, 0, 8, 1, 128).any()
    assert not moe_s(profile, "bf16", nothing, 4096, 1536, 8, 128, 1, 8).any()
    assert not all_reduce_s(profile, nothing, 8).any()
    assert not all_reduce_s(profile, np.ones(2), 1).any()
    assert not moe_all_to_all_s(profile, np.ones(2), 4096, 8, 1, 2.0).any()
    assert not elementwise_s(profile, nothing).any()


def test_norms_lie_between_the_sum_and_the_maximum():
    assert joined(1.0, 3.0, 4.0) == pytest.approx(7.0)
    assert joined(2.0, 3.0, 4.0) == pytest.approx(5.0)
    assert joined(200.0, 3.0, 4.0) == pytest.approx(4.0)
    assert joined(2.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_ideal_mode_is_never_slower(profile):
    ideal = profile.ideal()
    assert np.all(
        gemm_s(ideal, "bf16", ASCENDING, 4096, 4096)
        < gemm_s(profile, "bf16", ASCENDING, 4096, 4096)
    )
    assert np.all(
        moe_s(ideal, "bf16", ASCENDING, 4096, 1536, 8, 128, 1, 8)
        < moe_s(profile, "bf16", ASCENDING, 4096, 1536, 8, 128, 1, 8)
    )
    for ranks in (2, 8, 64):
        assert np.all(
            all_reduce_s(ideal, ASCENDING, ranks) < all_reduce_s(profile, ASCENDING, ranks)
        )
