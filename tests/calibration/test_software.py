"""Engine numbers: the fit finds what was planted, is what is committed, and reaches profiles."""

from dataclasses import replace

import numpy as np
import pytest

from simulator.calibration import engine_numbers, software
from simulator.calibration.engine_numbers import HOSTS, host_of, with_engine_numbers, write_numbers
from simulator.calibration.speculation import fit_speculation
from simulator.costs.closed_loop import closed_loop_tpot_s
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile, profile_names
from simulator.validation.serving import serving_setups

SHIPPED = [gpu for gpus in HOSTS.values() for gpu in gpus if gpu in profile_names()]
PLANTED = {
    "hopper": {"layer_s": 8e-6, "request_s": 3e-5, "prompt_layer_s": 5e-5, "quantise_s": 0.0},
    "blackwell": {"layer_s": -2e-6, "request_s": 1e-5, "prompt_layer_s": 1e-4, "quantise_s": 3e-6},
}
TURNS = {"synchronous_step_s": 2e-3, "synchronous_request_s": 1e-5}


def h100_setups():
    return [setup for setup in serving_setups() if setup.target.profile.name == "h100_sxm"]


def on_blackwell(setup):
    """The same rows as if a GPU of the other host had been measured, with 4-bit products."""
    profile = setup.target.profile
    kernels = profile.kernels
    renamed = profile.model_copy(
        update={
            "name": "b200_sxm",
            "kernels": kernels.model_copy(
                update={"gemm": {**kernels.gemm, "nvfp4": kernels.gemm["fp8"]}}
            ),
            "device": profile.device.model_copy(
                update={"peak_flops_per_s": {**profile.device.peak_flops_per_s, "fp4": 1.979e15}}
            ),
            "kernel_choice": {
                name: choice.model_copy(update={"gemm": "nvfp4"})
                for name, choice in profile.kernel_choice.items()
            },
        }
    )
    return replace(setup, target=replace(setup.target, profile=renamed))


def engine(host):
    profile = find_profile("h100_sxm")
    numbers = {**PLANTED[host], **TURNS, "step_s": 0.0}
    return profile.software.model_copy(update=numbers)


def with_engine(setup, host):
    profile = setup.target.profile.model_copy(update={"software": engine(host)})
    return replace(setup, target=replace(setup.target, profile=profile))


@pytest.fixture(scope="module")
def planted():
    hopper = [with_engine(setup, "hopper") for setup in h100_setups()]
    blackwell = [with_engine(on_blackwell(setup), "blackwell") for setup in h100_setups()]
    blackwell += [with_engine(setup, "blackwell") for setup in map(_renamed, h100_setups())]
    return [
        software._kernels(replace(setup, tpot_s=closed_loop_tpot_s(setup.costs(), setup.loop)))
        for setup in hopper + blackwell
    ]


def _renamed(setup):
    profile = setup.target.profile.model_copy(update={"name": "gb200"})
    return replace(setup, target=replace(setup.target, profile=profile))


def test_planted_numbers_are_found(planted):
    found = software._fit_serving(planted)
    for host, numbers in PLANTED.items():
        for name, value in {**numbers, **TURNS}.items():
            assert found[host][name] == pytest.approx(value, rel=0.02, abs=2e-8), (host, name)


def test_the_fit_prices_like_the_simulator(planted):
    for one in planted:
        host = host_of(one.setup.target.profile.name)
        assert one.tpot_s({**PLANTED[host], **TURNS}) == pytest.approx(one.setup.tpot_s)


def test_a_host_without_rows_is_refused(planted):
    hopper = [one for one in planted if one.setup.target.profile.name == "h100_sxm"]
    with pytest.raises(CalibrationError, match="blackwell"):
        software._fit_serving(hopper)


def test_speculation_costs_a_round_and_a_pass():
    numbers = engine_numbers_of("h100_sxm")
    found = fit_speculation(numbers)
    for name, value in found.items():
        assert value == pytest.approx(numbers[name], rel=0.2, abs=1e-6), name
    slower = fit_speculation({**numbers, "synchronous_step_s": 0.0})
    assert slower["speculative_round_s"] == pytest.approx(
        found["speculative_round_s"] + numbers["synchronous_step_s"], rel=0.05
    )


def engine_numbers_of(gpu):
    return with_engine_numbers(gpu, {"source": ""})


@pytest.mark.parametrize("gpu", SHIPPED)
def test_profiles_hold_the_committed_numbers(gpu):
    shipped = find_profile(gpu).software
    for name, value in engine_numbers_of(gpu).items():
        if name != "source":
            assert getattr(shipped, name) == value, name
    assert "scenarios/published/serving" in shipped.source


@pytest.mark.skipif(
    not {"h100_sxm", "h200_sxm", "b200_sxm"} <= set(profile_names()),
    reason="profiles that the fit rests on are missing",
)
def test_committed_numbers_are_the_fit():
    for host, numbers in software.fit_software().items():
        committed = engine_numbers_of(HOSTS[host][0])
        for name, value in numbers.items():
            assert committed[name] == pytest.approx(value, rel=1e-3, abs=1e-9), (host, name)


def test_numbers_are_written_the_same_twice(tmp_path, monkeypatch):
    numbers = {host: {"layer_s": np.float64(1e-6)} for host in HOSTS}
    for name in ("a", "b"):
        write_numbers(numbers, 0.1, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    monkeypatch.setattr(engine_numbers, "NUMBERS_FILE", tmp_path / "a")
    assert with_engine_numbers("gb200", {"layer_s": 9.0, "source": "s"})["layer_s"] == 1e-6


def test_a_gpu_of_neither_host_keeps_its_own_numbers():
    assert with_engine_numbers("my_gpu", {"step_s": 1.0, "source": "mine"}) == {
        "step_s": 1.0,
        "source": "mine",
    }
    with pytest.raises(CalibrationError, match="my_gpu"):
        host_of("my_gpu")
