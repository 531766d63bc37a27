"""Directions that physics demands, over common random numbers."""

from dataclasses import replace
from itertools import pairwise

import pytest

from simulator.analysis.arm import Averaging, simulate_arm
from simulator.analysis.projection import project
from simulator.specs.catalog import resolve
from tests.small_scenario import small

ROUNDING = 1.0 + 1e-9


def steps_s(scenario):
    """Step time of every single step of every seed [s]."""
    return project(scenario).tables["steps"]["step_time_s"].to_numpy()


def assert_never_slower(slow_to_fast):
    """Each scenario, step by step, is no slower than the one before, and the last is faster."""
    seconds = [steps_s(scenario) for scenario in slow_to_fast]
    for slower, faster in pairwise(seconds):
        assert (faster <= slower * ROUNDING).all()
    assert (seconds[-1] < seconds[0]).all()


def plain(**changes):
    return small(baseline=None, **changes)


@pytest.mark.parametrize("method", ["eagle3", "ngram"])
def test_more_acceptance_is_never_slower(method):
    assert_never_slower(
        plain(speculation={"method": method, "draft_length": 3, "acceptance_length": length})
        for length in (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
    )


def test_shorter_responses_are_never_slower():
    assert_never_slower(
        plain(workload__response_length={"kind": "lognormal", "mean": mean, "sigma": 0.7})
        for mean in (1600, 800, 400, 200)
    )


def test_a_lower_limit_is_never_slower():
    assert_never_slower(
        plain(workload__max_response_tokens=limit) for limit in (4096, 1500, 800, 300)
    )


def test_shorter_prompts_are_never_slower():
    assert_never_slower(
        plain(workload__prompt_length={"kind": "fixed", "tokens": tokens})
        for tokens in (6000, 2000, 500, 50)
    )


@pytest.mark.parametrize("speculation", [{"method": "none"}, ...], ids=["plain", "shipped"])
def test_more_gpus_are_never_slower(speculation):
    changes = {} if speculation is ... else {"speculation": speculation}
    assert_never_slower(plain(cluster__gpus=gpus, **changes) for gpus in (2, 4, 8, 16, 32))


def test_a_trainer_that_keeps_more_is_never_slower():
    assert_never_slower(
        plain(training={"efficiency": efficiency}) for efficiency in (0.05, 0.1, 0.3, 0.6, 1.0)
    )


def test_less_to_wait_for_is_never_slower():
    assert_never_slower(
        plain(pipeline={"data_s": wait_s, "reward_s": wait_s, "weight_sync": {"pause_s": wait_s}})
        for wait_s in (3.0, 1.0, 0.2, 0.0)
    )


@pytest.mark.parametrize("slots", [16, 1024], ids=["queueing", "all at once"])
def test_a_longer_leash_never_slows_the_pace_of_generation(slots):
    """The same 12 steps, so that only the order of the work differs."""
    paces = [
        project(
            plain(
                pipeline={"placement": "disaggregated", "max_policy_lag": lag},
                engine__max_num_seqs=slots,
                warmup_steps=8,
                steps=12,
                seeds=1,
            )
        )
        .phases_s["generation"]
        .mean
        for lag in (0, 1, 3)
    ]
    assert all(later <= earlier * ROUNDING for earlier, later in pairwise(paces))
    assert paces[-1] < 0.8 * paces[0]


def test_a_longer_leash_never_exposes_more_generation():
    exposed = [
        project(
            plain(
                pipeline={"placement": "disaggregated", "max_policy_lag": lag},
                warmup_steps=8,
                steps=12,
                seeds=1,
            )
        )
        .phases_s["exposed_generation"]
        .mean
        for lag in (0, 1, 3)
    ]
    assert all(later <= earlier * ROUNDING for earlier, later in pairwise(exposed))


def hastened(profile, part, factor):
    """A profile in which one part is ``factor`` times as fast."""
    device, network, software = profile.device, profile.network, profile.software
    changes = {
        "memory": {
            "device": {"hbm_bytes_per_s": factor * device.hbm_bytes_per_s},
        },
        "matrix units": {
            "device": {
                "peak_flops_per_s": {
                    name: factor * rate for name, rate in device.peak_flops_per_s.items()
                }
            },
        },
        "links": {
            "network": {
                "scale_up_bytes_per_s": factor * network.scale_up_bytes_per_s,
                "scale_out_bytes_per_s": factor * network.scale_out_bytes_per_s,
            },
        },
        "software": {
            "software": {
                name: getattr(software, name) / factor
                for name in ("step_s", "request_s", "speculative_round_s", "verify_token_s")
            },
        },
    }[part]
    return profile.model_copy(
        update={
            name: getattr(profile, name).model_copy(update=values)
            for name, values in changes.items()
        }
    )


@pytest.mark.parametrize("part", ["memory", "matrix units", "links", "software"])
@pytest.mark.parametrize("tensor_parallel", [1, 4])
def test_a_faster_profile_is_never_slower(part, tensor_parallel):
    resolved = resolve(plain(engine={"tensor_parallel": tensor_parallel}))
    averaging = Averaging.over(resolved.scenario)
    means = [
        simulate_arm(
            replace(resolved, profile=hastened(resolved.profile, part, factor)),
            averaging,
            lambda: None,
        )
        .estimates()["step_time_s"]
        .mean
        for factor in (1.0, 1.5, 3.0)
    ]
    assert all(later < earlier for earlier, later in pairwise(means))


def test_a_gb200_is_faster_than_an_h100():
    older = plain(cluster={"gpus": 4, "hardware": "h100_sxm"}, engine={"tensor_parallel": 4})
    newer = plain(cluster={"gpus": 4, "hardware": "gb200"}, engine={"tensor_parallel": 4})
    assert_never_slower([older, newer])


def test_ideal_software_is_never_slower():
    assert_never_slower(
        plain(engine={"tensor_parallel": 1, "software": software})
        for software in ("measured", "ideal")
    )
