"""Engine numbers fitted on published serving measurements; no kernel is touched.

Time per output token under load (``scenarios/published/serving``) tells what an iteration takes
beyond its priced kernels. Two kinds of host share numbers, Hopper's and Blackwell's; scheduling in
turns with the GPU, vLLM's way before 0.14, has its own, on either. Only models without experts are
fitted, because their kernels are priced best: on 64 and 80 layers a constant of the step cannot be
told from small kernels of a layer, so ``step_s`` is 0 and ``layer_s`` holds both.

What speculation adds comes from EAGLE-3 rounds of vLLM on H100 and from a published linear profile
(``scenarios/published/verify``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simulator.calibration.engine_fit import NO_ENGINE, fit_seconds
from simulator.calibration.engine_numbers import HOSTS, host_of
from simulator.calibration.speculation import fit_speculation
from simulator.costs.generation import small_kernels_s
from simulator.costs.layers import FloatArray
from simulator.errors import CalibrationError
from simulator.validation.serving import ServingSetup, serving_setups

_OF_HOST = ("layer_s", "request_s", "prompt_layer_s", "quantise_s")
_OF_SCHEDULE = ("synchronous_step_s", "synchronous_request_s")
_LEFT_OUT = "Qwen3-32B"
_LEAST_LAYER_S = -1e-5
"""A graph of one attention and one expert kernel holds twice 5 us of launch [s]."""


@dataclass(frozen=True, slots=True)
class _Kernels:
    """One set-up's seconds without any engine, and what multiplies each engine number."""

    setup: ServingSetup
    plain_s: FloatArray
    mixed_s: FloatArray
    is_eager: FloatArray
    """1 where iterations with prompts leave the captured range, else 0."""
    eager_step_s: float
    """Least time of those [s]."""
    layers: float
    products: float
    """4-bit products whose input is quantised [1]."""

    def tpot_s(self, numbers: dict[str, float]) -> FloatArray:
        """Time per output token with these engine numbers [s]."""
        small_s = self.layers * numbers["layer_s"] + self.products * numbers["quantise_s"]
        launches_s = self.is_eager * self.layers * numbers["prompt_layer_s"]
        mixed_s = np.maximum(self.mixed_s + small_s + launches_s, self.is_eager * self.eager_step_s)
        software_s = numbers["request_s"] * self.setup.loop.concurrency
        if not self.setup.is_ahead:
            software_s = software_s + numbers["synchronous_step_s"]
            software_s = software_s + (
                numbers["synchronous_request_s"] * self.setup.loop.concurrency
            )
        return self.setup.loop.tpot_s(self.plain_s + small_s, mixed_s) + software_s


def fit_software(left_out: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Engine numbers by host, from the rows whose role is ``fitted``.

    Parameters
    ----------
    left_out
        Models whose rows are not used.

    Raises
    ------
    CalibrationError
        If a host has no rows: the profiles of its GPUs are missing.
    """
    setups = [
        setup
        for setup in serving_setups()
        if setup.role == "fitted" and setup.target.model.name not in left_out
    ]
    numbers = _fit_serving([_kernels(setup) for setup in setups])
    speculation = fit_speculation(numbers["hopper"])
    return {host: {**values, **speculation} for host, values in numbers.items()}


def _kernels(setup: ServingSetup) -> _Kernels:
    costs = replace(setup.costs(), software=NO_ENGINE, captured_tokens=2**40)
    loop, software = setup.loop, setup.target.profile.software
    plain_s = costs.round_cost(loop.concurrency, loop.context_tokens).total_s
    mixed_s = costs.round_cost(
        loop.concurrency, loop.context_tokens, loop.prefill_tokens, loop.prefill_context
    ).total_s
    tokens = loop.concurrency + loop.prefill_tokens
    return _Kernels(
        setup=setup,
        plain_s=plain_s,
        mixed_s=mixed_s,
        is_eager=np.where(tokens > software.captured_tokens, 1.0, 0.0),
        eager_step_s=software.eager_step_s,
        layers=_multiplier(setup, "layer_s"),
        products=_multiplier(setup, "quantise_s"),
    )


def _multiplier(setup: ServingSetup, name: str) -> float:
    return small_kernels_s(setup.target, NO_ENGINE.model_copy(update={name: 1.0}))


def _fit_serving(kernels: Sequence[_Kernels]) -> dict[str, dict[str, float]]:
    """Fit all hosts at once; a number that no row of a host tells is the other host's."""
    places = [
        (host, name)
        for host in HOSTS
        for name in _OF_HOST
        if name != "quantise_s" or host == "blackwell"
    ]
    hosts = [host_of(one.setup.target.profile.name) for one in kernels]
    for host in HOSTS:
        if host not in hosts:
            raise CalibrationError(
                f"no serving measurement of {host} can be priced; ship the profile of one of "
                f"{', '.join(HOSTS[host])} first"
            )
    target = np.log(np.concatenate([one.setup.tpot_s for one in kernels]))

    def build(x: FloatArray) -> dict[str, dict[str, float]]:
        shared = dict(zip(_OF_SCHEDULE, x[len(places) :], strict=True))
        built = {host: {"quantise_s": 0.0, **shared} for host in HOSTS}
        for (host, name), value in zip(places, x, strict=False):
            built[host][name] = value
        return built

    def residuals(x: FloatArray) -> FloatArray:
        numbers = build(x)
        seconds = [one.tpot_s(numbers[host]) for one, host in zip(kernels, hosts, strict=True)]
        return np.asarray(np.log(np.concatenate(seconds)) - target)

    names = [*(name for _, name in places), *_OF_SCHEDULE]
    least = np.array([_LEAST_LAYER_S if name == "layer_s" else 0.0 for name in names])
    x = fit_seconds(residuals, np.full(len(names), 1e-5), least)
    numbers = build(x)
    return {host: {"step_s": 0.0, **values} for host, values in numbers.items()}


def error_by_model(left_out: str) -> FloatArray:
    """Absolute relative errors of one fitted model's rows, its numbers fitted without it [1]."""
    numbers = fit_software([left_out])
    errors = []
    for setup in serving_setups():
        if setup.target.model.name == left_out:
            one = _kernels(setup)
            projected = one.tpot_s(numbers[host_of(setup.target.profile.name)])
            errors.append(np.abs(projected / setup.tpot_s - 1.0))
    return np.concatenate(errors)


def unseen_model_error() -> float:
    """Root mean square of log(measured / modelled) on a model that no engine number has seen [1].

    Only the second of the two fitted models can be left out: Blackwell has rows of the first alone.
    """
    return round(float(np.sqrt(np.mean(np.log1p(error_by_model(_LEFT_OUT)) ** 2))), 3)
