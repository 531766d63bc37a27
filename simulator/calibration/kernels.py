"""Every kernel of one GPU fitted to the tables that are chosen for it."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from simulator.calibration.attention import (
    decode_compute,
    fit_decode,
    fit_prefill,
    grouped_rows,
    latent_rows,
)
from simulator.calibration.choices import AttentionChoice, GpuChoices
from simulator.calibration.messages import (
    all_reduce_rows,
    exchange_rows,
    fit_all_reduce,
    fit_exchange,
)
from simulator.calibration.products import fit_gemm, fit_moe, gemm_rows, moe_rows
from simulator.specs.hardware import CachePrecision, Device, Kernels
from simulator.specs.kernels import CollectiveFit, DecodeAttentionFit, PrefillAttentionFit

Attention = TypeVar("Attention", DecodeAttentionFit, PrefillAttentionFit)


def fit_kernels(choices: GpuChoices, device: Device) -> Kernels:
    """Fit every kernel of a GPU."""
    gpu, attention, latent = choices.gpu, choices.attention, choices.latent
    prefill = {kv: _prefill(gpu, attention, kv, device) for kv in attention.caches}
    latent_prefill = {
        kv: fit_prefill(latent_rows(gpu, latent.prefill, kv), kv, device, latent.prefill)
        for kv in latent.caches
    }
    latent_decode = {
        kv: fit_decode(latent_rows(gpu, latent.decode, kv), kv, device, latent.decode)
        for kv in latent.caches
    }
    return Kernels(
        gemm={
            precision: fit_gemm(gemm_rows(gpu, choice), precision, device, choice.table)
            for precision, choice in choices.gemm.items()
        },
        moe={
            precision: fit_moe(moe_rows(gpu, choice), precision, device, choice.table)
            for precision, choice in choices.moe.items()
        },
        prefill_attention=prefill,
        latent_prefill_attention=latent_prefill,
        decode_attention={
            kv: _decode(
                gpu,
                attention,
                kv,
                device,
                decode_compute(prefill[kv], latent_decode[kv], latent_prefill[kv]),
            )
            for kv in attention.caches
        },
        latent_decode_attention=latent_decode,
        all_reduce=_all_reduce(choices),
        expert_exchange=fit_exchange(exchange_rows(choices.exchange), choices.exchange.table),
    )


def _prefill(
    gpu: str, choice: AttentionChoice, kv: CachePrecision, device: Device
) -> PrefillAttentionFit:
    def fit(width: int) -> PrefillAttentionFit:
        rows = grouped_rows(gpu, choice.prefill, kv, width, kernel=choice.kernel)
        return fit_prefill(rows, kv, device, choice.prefill)

    return _widths(choice.widths, fit)


def _decode(
    gpu: str, choice: AttentionChoice, kv: CachePrecision, device: Device, compute: float
) -> DecodeAttentionFit:
    def fit(width: int) -> DecodeAttentionFit:
        rows = grouped_rows(
            gpu,
            choice.decode,
            kv,
            width,
            kernel=choice.kernel,
            least_group=choice.least_group,
        )
        return fit_decode(rows, kv, device, choice.decode, compute)

    return _widths(choice.widths, fit)


def _widths(widths: Sequence[int], fit: Callable[[int], Attention]) -> Attention:
    first, *others = (fit(width) for width in widths)
    return first.model_copy(update={"other_widths": tuple(others)})


def _all_reduce(choices: GpuChoices) -> tuple[CollectiveFit, ...]:
    fits: list[CollectiveFit] = []
    for choice in choices.all_reduce:
        note = (
            "" if choice.gpu == choices.gpu else f"measured on {choice.gpu}, whose links are alike"
        )
        fits += fit_all_reduce(all_reduce_rows(choice), choice.table, note)
    return tuple(sorted(fits, key=lambda fit: fit.ranks))
