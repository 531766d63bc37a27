"""What was fitted as tables for people, from the profiles themselves."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from simulator.specs.hardware import HardwareProfile
from simulator.specs.kernels import (
    DecodeAttentionFit,
    GemmFit,
    MoeFit,
    PrefillAttentionFit,
    Provenance,
)
from simulator.units import MICRO

KernelFit = GemmFit | MoeFit | DecodeAttentionFit | PrefillAttentionFit
Name = TypeVar("Name", bound=str)

TARGET_GPUS = ("h100_sxm", "h200_sxm", "b200_sxm", "gb200", "gb300")
"""Profiles whose errors are summarised."""
MOST_MEDIAN_ERROR = 0.09
"""Median error above which a class is a miss [1]."""
MOST_P90_ERROR = 0.28
"""90th percentile above which a class is a miss [1]."""

_ORDER = (
    "gemm",
    "moe",
    "decode attention",
    "prefill attention",
    "latent decode attention",
    "latent prefill attention",
    "all-reduce",
    "expert exchange",
)
"""Order of the rows of a table."""


def provenances(profile: HardwareProfile) -> Iterator[tuple[str, str, Provenance]]:
    """Name, precision or ranks, and provenance of each fitted kernel."""
    kernels = profile.kernels
    yield from _of("gemm", kernels.gemm)
    yield from _of("moe", kernels.moe)
    yield from _of("decode attention", kernels.decode_attention)
    yield from _of("prefill attention", kernels.prefill_attention)
    yield from _of("latent decode attention", kernels.latent_decode_attention)
    yield from _of("latent prefill attention", kernels.latent_prefill_attention)
    for reduction in kernels.all_reduce:
        yield "all-reduce", f"{reduction.ranks} ranks", reduction.provenance
    yield "expert exchange", "all ranks", kernels.expert_exchange.provenance


def _of(kind: str, fits: Mapping[Name, KernelFit]) -> Iterator[tuple[str, str, Provenance]]:
    for precision, fit in fits.items():
        yield kind, precision, fit.provenance
        match fit:
            case MoeFit(divided=MoeFit() as divided):
                yield f"{kind}, divided experts", precision, divided.provenance
            case DecodeAttentionFit() | PrefillAttentionFit():
                for other in fit.other_widths:
                    yield f"{kind}, heads of {other.head_dim:.0f}", precision, other.provenance


def kernel_table(profile: HardwareProfile) -> str:
    """Markdown table of one profile's errors on held-out shapes, one row a kernel."""
    rows = [
        f"| {name} | {precision} | {origin.points:,} | {origin.heldout_points:,} | "
        f"{origin.heldout_median_error:.1%} | {origin.heldout_p90_error:.1%} | {origin.kernel} |"
        for name, precision, origin in provenances(profile)
    ]
    header = (
        "| kernel | precision | rows | held out | median | 90th percentile | measured kernel |",
        "|---|---|---|---|---|---|---|",
    )
    return "\n".join((*header, *rows))


def error_table(profiles: Sequence[HardwareProfile]) -> str:
    """Markdown table of the errors of several profiles, a row a kernel and a column a profile.

    A cell is *median / 90th percentile* on held-out shapes in per cent, bold where it is a miss.
    """
    found = {
        profile.name: {
            (name, precision): origin for name, precision, origin in provenances(profile)
        }
        for profile in profiles
    }
    kernels = list(dict.fromkeys(key for origins in found.values() for key in origins))
    kernels.sort(key=lambda key: list(_ORDER).index(key[0].split(",")[0]))
    lines = [
        f"| kernel | precision | {' | '.join(found)} |",
        f"|---|---|{'---|' * len(found)}",
    ]
    for name, precision in kernels:
        cells = (_cell(origins.get((name, precision))) for origins in found.values())
        lines.append(f"| {name} | {precision} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(origin: Provenance | None) -> str:
    if origin is None:
        return "–"
    text = f"{100 * origin.heldout_median_error:.1f} / {100 * origin.heldout_p90_error:.1f}"
    return f"**{text}**" if _is_miss(origin) else text


def _is_miss(origin: Provenance) -> bool:
    return (
        origin.heldout_median_error > MOST_MEDIAN_ERROR or origin.heldout_p90_error > MOST_P90_ERROR
    )


def summary(profiles: Sequence[HardwareProfile]) -> str:
    """One sentence: errors of all classes of the target GPUs, weighted by measured rows."""
    origins = [
        origin
        for profile in profiles
        if profile.name in TARGET_GPUS
        for _, _, origin in provenances(profile)
    ]
    rows = sum(origin.points for origin in origins)
    if rows == 0:
        return "None of the GPUs whose errors are summarised was fitted."
    median = sum(origin.points * origin.heldout_median_error for origin in origins) / rows
    p90 = sum(origin.points * origin.heldout_p90_error for origin in origins) / rows
    misses = sum(_is_miss(origin) for origin in origins)
    gpus = [profile.name for profile in profiles if profile.name in TARGET_GPUS]
    return (
        f"Over the {len(origins)} classes of {', '.join(gpus)}, weighted by their {rows:,} rows, "
        f"the median is {median:.1%} and the 90th percentile {p90:.1%}; {misses} classes are above "
        f"{MOST_MEDIAN_ERROR:.0%} or {MOST_P90_ERROR:.0%}."
    )


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
