"""The error of every fitted kernel as a table for people, from the profiles themselves."""

from collections.abc import Iterator, Sequence

from simulator.specs.hardware import HardwareProfile
from simulator.specs.kernels import Provenance

_HEADER = (
    "| kernel | precision | GPU | rows | held out | median | 90th percentile | measured kernel |",
    "|---|---|---|---|---|---|---|---|",
)


def provenances(profile: HardwareProfile) -> Iterator[tuple[str, str, Provenance]]:
    """Name, precision or ranks, and provenance of each fitted kernel."""
    kernels = profile.kernels
    for name, precision, fit in (
        *(("gemm", key, fit.provenance) for key, fit in kernels.gemm.items()),
        *(("moe", key, fit.provenance) for key, fit in kernels.moe.items()),
        *(("decode attention", key, f.provenance) for key, f in kernels.decode_attention.items()),
        *(("prefill attention", key, f.provenance) for key, f in kernels.prefill_attention.items()),
        *(
            ("latent decode attention", key, f.provenance)
            for key, f in kernels.latent_decode_attention.items()
        ),
        *(
            ("latent prefill attention", key, f.provenance)
            for key, f in kernels.latent_prefill_attention.items()
        ),
        *(("all-reduce", f"{fit.ranks} ranks", fit.provenance) for fit in kernels.all_reduce),
        ("expert exchange", "all ranks", kernels.expert_exchange.provenance),
    ):
        yield name, precision, fit


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
