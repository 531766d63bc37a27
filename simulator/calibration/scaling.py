"""A profile of a GPU that nobody measured, scaled from a sibling's by what the datasheets say.

Coefficients of peaks and bandwidths are relative and carry over. What carries seconds changes with
what it stands for: work that the streaming multiprocessors share grows as their number falls, and
messages slow down with their links. Launches and walks of one block stay as they are.
"""

import math
from typing import TypeVar

from simulator.specs.hardware import Device, Kernels, Network
from simulator.specs.kernels import (
    CollectiveFit,
    DecodeAttentionFit,
    ExchangeFit,
    GemmFit,
    MoeFit,
    PrefillAttentionFit,
)

Fit = TypeVar(
    "Fit", GemmFit, MoeFit, DecodeAttentionFit, PrefillAttentionFit, CollectiveFit, ExchangeFit
)

Message = TypeVar("Message", CollectiveFit, ExchangeFit)

_SHARED_TIMES = ("group_s", "head_s", "write_thread_s", "write_element_s")
"""Times of work items that all multiprocessors share."""


def scaled_kernels(
    base: Kernels, source: str, old: tuple[Device, Network], new: tuple[Device, Network]
) -> Kernels:
    """The kernels of a GPU ``source``, for a GPU of the same generation with other rates.

    Parameters
    ----------
    old, new
        Rates and links of the GPU that was measured, and of the other one.
    """
    fewer = old[0].sm_count / new[0].sm_count
    note = f"scaled from {source} by the datasheets"

    def attention(fit: Fit) -> Fit:
        shared = {name: fewer * getattr(fit, name) for name in _SHARED_TIMES if hasattr(fit, name)}
        others = tuple(attention(other) for other in getattr(fit, "other_widths", ()))
        return told(fit.model_copy(update={**shared, "other_widths": others}), note)

    def experts(fit: MoeFit) -> MoeFit:
        divided = told(fit.divided, note) if fit.divided else None
        return told(fit.model_copy(update={"divided": divided}), note)

    return Kernels(
        gemm={name: told(fit, note) for name, fit in base.gemm.items()},
        moe={name: experts(fit) for name, fit in base.moe.items()},
        decode_attention={name: attention(fit) for name, fit in base.decode_attention.items()},
        prefill_attention={name: attention(fit) for name, fit in base.prefill_attention.items()},
        latent_decode_attention={
            name: attention(fit) for name, fit in base.latent_decode_attention.items()
        },
        latent_prefill_attention={
            name: attention(fit) for name, fit in base.latent_prefill_attention.items()
        },
        all_reduce=tuple(told(_relinked(fit, old[1], new[1]), note) for fit in base.all_reduce),
        expert_exchange=told(_relinked(base.expert_exchange, old[1], new[1]), note),
    )


def scaled_exchange(fit: ExchangeFit, source: str, old: Network, new: Network) -> ExchangeFit:
    """Dispatch and combine over other links."""
    return told(_relinked(fit, old, new), f"measured on {source}, scaled by the rates of the links")


def told(fit: Fit, note: str) -> Fit:
    """A fit whose provenance says one thing more."""
    origin = fit.provenance
    notes = "; ".join(filter(None, (note, origin.note)))
    return fit.model_copy(update={"provenance": origin.model_copy(update={"note": notes})})


def _relinked(fit: Message, old: Network, new: Network) -> Message:
    faster = _links(old, new)
    return fit.model_copy(
        update={
            "bytes_per_s": fit.bytes_per_s * faster,
            "root_s": fit.root_s / math.sqrt(faster),
        }
    )


def _links(old: Network, new: Network) -> float:
    return new.scale_up_bytes_per_s / old.scale_up_bytes_per_s
