"""What was fitted as tables for people, from the profiles themselves."""

from collections.abc import Iterator, Sequence

from simulator.specs.hardware import HardwareProfile
from simulator.specs.kernels import Provenance
from simulator.units import MICRO

_HEADER = (
    "| kernel | precision | GPU | rows | held out | median | 90th percentile | measured kernel |",
    "|---|---|---|---|---|---|---|---|",
)


def provenances(profile: HardwareProfile) -> Iterator[tuple[str, str, Provenance]]:
    """Name, precision or ranks, and provenance of each fitted kernel."""
    kernels = profile.kernels
    for kind, fits in (
        ("gemm", kernels.gemm),
        ("moe", kernels.moe),
        ("decode attention", kernels.decode_attention),
        ("prefill attention", kernels.prefill_attention),
        ("latent decode attention", kernels.latent_decode_attention),
        ("latent prefill attention", kernels.latent_prefill_attention),
    ):
        for precision, fit in fits.items():
            yield kind, precision, fit.provenance
    for reduction in kernels.all_reduce:
        yield "all-reduce", f"{reduction.ranks} ranks", reduction.provenance
    yield "expert exchange", "all ranks", kernels.expert_exchange.provenance


def error_table(profiles: Sequence[HardwareProfile]) -> str:
    """Markdown table of the error on held-out shapes, one row a kernel."""
    rows = [
        f"| {name} | {precision} | {profile.name} | {origin.points:,} | "
        f"{origin.heldout_points:,} | {origin.heldout_median_error:.1%} | "
        f"{origin.heldout_p90_error:.1%} | {origin.kernel} |"
        for profile in profiles
        for name, precision, origin in provenances(profile)
    ]
    return "\n".join((*_HEADER, *rows))


_ENGINE_FIELDS = (
    "layer_s",
    "quantise_s",
    "prompt_layer_s",
    "step_s",
    "request_s",
    "synchronous_step_s",
    "synchronous_request_s",
    "speculative_round_s",
    "draft_pass_s",
    "verify_token_s",
)


def software_table(profiles: Sequence[HardwareProfile]) -> str:
    """Markdown table of the engine numbers in microseconds, one column a profile."""
    names = [profile.name for profile in profiles]
    rows = [
        f"| {field} | "
        + " | ".join(f"{getattr(profile.software, field) / MICRO:.4g}" for profile in profiles)
        + " |"
        for field in _ENGINE_FIELDS
    ]
    head = (f"| [us] | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|")
    return "\n".join((*head, *rows))
