"""Time per output token of vLLM under load: ``scenarios/published/serving``.

A row is one set-up at one concurrency. It is projected with the shipped profile of its GPU and the
closed loop of :mod:`simulator.costs.closed_loop`. Engine numbers were fitted on models without
experts, so those rows are ``fitted`` and all models with experts are ``validation``.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.costs.closed_loop import ClosedLoop, closed_loop_tpot_s
from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import FloatArray, Target
from simulator.errors import ScenarioError
from simulator.specs.catalog import find_model, find_profile, profile_names
from simulator.specs.hardware import HardwareProfile, KernelChoice
from simulator.specs.parallelism import EngineParallelism
from simulator.units import KILO
from simulator.validation.cases import Case, Role, published_rows
from simulator.validation.uncertainty import kernel_sigma

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "serving"
METRIC = "tpot_s"
MAX_BATCHED_TOKENS = 8_192.0
"""Token budget of an iteration, vLLM's default for servers on these GPUs [tokens]."""
_SETUP = (
    "model",
    "gpu",
    "precision",
    "gemm",
    "attention",
    "kv_precision",
    "tensor_ranks",
    "expert_ranks",
)
_FIRST_AHEAD = (0, 14)
"""Release of vLLM from which scheduling ahead is the default."""


@dataclass(frozen=True, slots=True)
class ServingSetup:
    """Rows that share a model, a GPU and a sharding."""

    target: Target
    loop: ClosedLoop
    is_ahead: bool
    """Whether the engine schedules ahead of the GPU."""
    tpot_s: FloatArray
    """What was measured [s]."""
    rows: "pd.DataFrame"

    @property
    def role(self) -> Role:
        """``fitted`` for models without experts."""
        return "validation" if self.target.model.is_moe else "fitted"

    def costs(self) -> GenerationCosts:
        """What prices the rows with the engine numbers of the profile."""
        software = self.target.profile.software
        return GenerationCosts(
            target=self.target,
            method="none",
            draft_length=0,
            drafter=None,
            software=software.scheduled(self.is_ahead),
            captured_tokens=software.captured_tokens,
        )


def schedules_ahead(engine_version: str) -> bool:
    """Whether this vLLM schedules ahead of the GPU.

    The default from 0.14 on. Runs of InferenceX turned it on in 2025 already; theirs are those
    whose release is not known.
    """
    parts = engine_version.split(".")
    if not parts[0].isdigit():
        return True
    return tuple(int(part) for part in parts[:2]) >= _FIRST_AHEAD


def serving_setups(rows: "pd.DataFrame | None" = None) -> Iterator[ServingSetup]:
    """The committed rows, or others of the same columns, by set-up and in their order.

    Rows of a GPU or a precision without a shipped profile are passed over.
    """
    table = published_rows(SOURCE, "tpot.csv") if rows is None else rows
    table = table.assign(is_ahead=[schedules_ahead(text) for text in table["engine_version"]])
    for _, group in table.groupby([*_SETUP, "is_ahead"], sort=False):
        first = group.iloc[0]
        target = _target(first)
        if target is None:
            continue
        concurrency, prompts, outputs, share, tpot = (
            group[name].to_numpy(dtype=np.float64)
            for name in (
                "concurrency",
                "prompt_tokens",
                "output_tokens",
                "mean_length",
                "tpot_ms",
            )
        )
        yield ServingSetup(
            target=target,
            loop=ClosedLoop(concurrency, share * prompts, share * outputs, MAX_BATCHED_TOKENS),
            is_ahead=bool(first["is_ahead"]),
            tpot_s=tpot / KILO,
            rows=group,
        )


def serving_cases() -> list[Case]:
    """Every row that a shipped profile can price."""
    setups = list(serving_setups())
    projected = [closed_loop_tpot_s(setup.costs(), setup.loop) for setup in setups]
    return [
        Case(
            source=SOURCE,
            case=_describe(row),
            metric=METRIC,
            published=float(measured),
            projected=float(seconds_of_row),
            sigma=float(np.hypot(setup.target.profile.model_error.generation, sigma)),
            role=setup.role,
        )
        for setup, seconds in zip(setups, projected, strict=True)
        for row, measured, seconds_of_row, sigma in zip(
            setup.rows.to_dict("records"),
            setup.tpot_s,
            seconds,
            kernel_sigma(setup.target, setup.loop.concurrency, setup.loop.context_tokens, 1),
            strict=True,
        )
    ]


def _target(row: "pd.Series") -> Target | None:
    if row["gpu"] not in profile_names():
        return None
    profile = find_profile(row["gpu"])
    if row["precision"] not in profile.kernel_choice:
        return None
    model = find_model(row["model"])
    return Target(
        model=model.model_copy(update={"quantises_attention": row["attention"] != "bf16"}),
        profile=_with_gemm(profile, row["precision"], row["gemm"]),
        parallelism=EngineParallelism(
            tensor=int(row["tensor_ranks"]), expert=int(row["expert_ranks"])
        ),
        precision=row["precision"],
        kv_precision=row["kv_precision"],
    )


def _with_gemm(profile: HardwareProfile, precision: str, gemm: str) -> HardwareProfile:
    """The profile with the kernel of dense products that the row's checkpoint asks for."""
    if gemm not in profile.kernels.gemm:
        raise ScenarioError(f"profile {profile.name} has no kernel {gemm} of dense products")
    choices = dict(profile.kernel_choice)
    chosen = {name: choice for name, choice in choices.items() if name == precision}
    for name, choice in chosen.items():
        choices[name] = KernelChoice.model_validate({**choice.model_dump(), "gemm": gemm})
    return profile.model_copy(update={"kernel_choice": choices})


def _describe(row: Mapping[Hashable, Any]) -> str:
    ranks = f"TP{row['tensor_ranks']}"
    if row["expert_ranks"] > 1:
        ranks += f" EP{row['expert_ranks']}"
    return (
        f"{row['model']} {row['precision']} {ranks} on {row['gpu']}, vLLM {row['engine_version']}, "
        f"{row['prompt_tokens']}/{row['output_tokens']} tokens, {row['concurrency']} requests"
    )
