"""What every shipped profile must be: known, small, written by us, and told about truthfully."""

import math
from pathlib import Path

import numpy as np
import pytest

from simulator.calibration import calibrate
from simulator.calibration.choices import CHOICES, SCALED, known_profiles, profile_name
from simulator.calibration.profile import read_datasheet, write_profile
from simulator.calibration.report import error_table, provenances, summary
from simulator.cli.calibrate import calibrate as command
from simulator.costs.attention import decode_attention_s
from simulator.costs.collectives import all_reduce_s, moe_all_to_all_s
from simulator.costs.operators import gemm_s
from simulator.errors import CalibrationError, ScenarioError
from simulator.specs.catalog import find_profile, profile_names, resolve
from tests.small_scenario import small

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "calibration.md"


def test_every_profile_that_calibrate_knows_is_shipped_and_no_other():
    assert set(profile_names()) == set(known_profiles())


@pytest.mark.parametrize("name", known_profiles())
def test_a_written_profile_is_the_shipped_one_byte_for_byte(name, tmp_path):
    shipped = ROOT / "hardware_profiles" / f"{name}.yaml"
    write_profile(find_profile(name), tmp_path / f"{name}.yaml")
    assert (tmp_path / f"{name}.yaml").read_bytes() == shipped.read_bytes()
    assert shipped.stat().st_size < 40_000


@pytest.mark.parametrize("name", known_profiles())
def test_the_unfitted_part_of_a_profile_is_its_datasheet(name):
    profile = find_profile(name).model_dump(mode="json", exclude={"kernels"})
    for section, content in read_datasheet(name).items():
        assert profile[section] == content


@pytest.mark.parametrize("name", known_profiles())
def test_every_precision_of_a_profile_has_its_kernels(name):
    profile = find_profile(name)
    for choice in profile.kernel_choice.values():
        assert choice.gemm in profile.kernels.gemm
        assert choice.moe in profile.kernels.moe
    assert set(profile.training.matrix_efficiency) <= set(profile.kernel_choice)


def test_every_fitted_kernel_says_where_it_comes_from():
    for name in profile_names():
        for kernel, precision, origin in provenances(find_profile(name)):
            assert origin.source.startswith("aiconfigurator-core"), (name, kernel, precision)
            assert origin.heldout_points > 0
            assert origin.fit_range
            assert origin.heldout_median_error < 0.15


def test_the_documented_errors_are_those_of_the_profiles():
    page = PAGE.read_text(encoding="utf-8")
    fitted = [find_profile(name) for name in CHOICES]
    engines = [profile for profile in fitted if not profile.name.endswith("_sglang")]
    assert error_table(engines) in page
    assert error_table([profile for profile in fitted if profile not in engines]) in page
    assert summary(fitted) in page


def test_the_kernels_of_the_target_gpus_are_as_good_as_asked():
    """Weighted by rows: median at most 6%, 90th percentile at most 17%."""
    sentence = summary([find_profile(name) for name in CHOICES])
    median, p90 = (
        float(part.split("%")[0].split()[-1])
        for part in (sentence.split("median is")[1], sentence.split("percentile")[1])
    )
    assert median <= 6.0
    assert p90 <= 17.0


@pytest.mark.parametrize("name", SCALED)
def test_a_scaled_profile_comes_from_the_shipped_base_byte_for_byte(name, tmp_path):
    shipped = ROOT / "hardware_profiles" / f"{name}.yaml"
    profile = calibrate(name, tmp_path / f"{name}.yaml")
    assert (tmp_path / f"{name}.yaml").read_bytes() == shipped.read_bytes()
    assert "scaled" in profile.description
    assert all("scaled from h100_sxm" in origin.note for _, _, origin in provenances(profile))


def test_scaling_follows_the_datasheets():
    base, slow_links, slow_cores = (find_profile(name) for name in ("h100_sxm", *SCALED))
    size = np.array([1e9])
    ratio = all_reduce_s(slow_links, size, 8) / all_reduce_s(base, size, 8)
    assert ratio[0] == pytest.approx(450 / 200, rel=0.02)
    exchange = [moe_all_to_all_s(gpu, 1e5, 4096, 8, 8, 2.0) for gpu in (slow_links, base)]
    assert exchange[0] / exchange[1] == pytest.approx(450 / 200, rel=0.05)
    many = np.array([16_384.0])
    ratio = gemm_s(slow_cores, "bf16", many, 8192, 8192) / gemm_s(base, "bf16", many, 8192, 8192)
    assert ratio[0] == pytest.approx(989 / 148, rel=0.1)
    # Long caches are read faster, a crowd of short ones is served by fewer multiprocessors.
    long = [decode_attention_s(gpu, "bf16", 64, 1e6, 1, 8, 1, 128) for gpu in (slow_cores, base)]
    assert 3.35 / 4.0 < long[0] / long[1] < 1.0
    crowd = [decode_attention_s(gpu, "bf16", 1e5, 1, 1, 8, 1, 128) for gpu in (slow_cores, base)]
    assert crowd[0] / crowd[1] > 1.2


def test_gb200_takes_eight_ranks_and_more_from_gb300_and_says_so():
    fits = {fit.ranks: fit.provenance for fit in find_profile("gb200").kernels.all_reduce}
    assert list(fits) == [2, 4, 8, 16]
    assert all("gb300" in fits[ranks].note for ranks in (8, 16))
    assert not fits[4].note


@pytest.mark.parametrize(
    ("gpu", "backend", "allowed"),
    [
        ("tpu_v9", "vllm", ["h200_sxm", "h20_sxm"]),
        ("a100_sxm", "sglang", ["h200_sxm", "gb200"]),
        ("h20_sxm", "sglang", ["h100_sxm"]),
        ("h200_sxm", "trtllm", ["vllm", "sglang"]),
    ],
)
def test_unknown_gpus_and_back_ends_are_refused_with_the_known_ones(gpu, backend, allowed):
    with pytest.raises(CalibrationError) as caught:
        profile_name(gpu, backend)
    assert all(name in str(caught.value) for name in allowed)


def test_a_profile_is_named_after_gpu_and_back_end():
    assert profile_name("h200_sxm", "vllm") == "h200_sxm"
    assert profile_name("h200_sxm", "sglang") == "h200_sxm_sglang"


def test_the_nearest_width_of_heads_is_taken_by_ratio():
    fit = find_profile("h100_sxm").kernels.decode_attention["bf16"]
    nearest = {width: fit.of_width(width).head_dim for width in (32, 64, 80, 96, 128, 192, 512)}
    assert nearest == {32: 64, 64: 64, 80: 64, 96: 128, 128: 128, 192: 256, 512: 256}
    assert math.isclose(fit.of_width(64).ideal().launch_s, 0.0)


def test_a_cache_precision_without_kernels_is_refused_with_what_there_is():
    scenario = small(cluster__hardware="a100_sxm", engine__kv_precision="fp8")
    with pytest.raises(ScenarioError, match=r"engine\.kv_precision: a100_sxm has no fp8.*bf16"):
        resolve(scenario)
    assert resolve(small(cluster__hardware="a100_sxm")).profile.name == "a100_sxm"


def test_all_refits_every_profile_those_that_others_rest_on_first(tmp_path, monkeypatch, capsys):
    order = []

    def refit(name, path):
        order.append(name)
        write_profile(find_profile(name), path)
        return find_profile(name)

    monkeypatch.setattr("simulator.calibration.calibrate", refit)
    monkeypatch.setattr("simulator.cli.calibrate._plot", lambda profile, folder: order.append(""))
    command(everything=True, output=tmp_path, plots=tmp_path)
    assert order[: len(known_profiles())] == list(known_profiles())
    assert order.index("h100_sxm") < order.index("h20_sxm")
    assert {path.stem for path in tmp_path.glob("*.yaml")} == set(known_profiles())
    assert order.count("") == len(CHOICES)
    assert "weighted by their" in capsys.readouterr().out
