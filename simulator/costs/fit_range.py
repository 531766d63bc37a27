"""Where a scenario asks a fitted kernel for more than the measurements behind it hold.

A price outside the fitted range follows the equation and no measurement, so a projection says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from simulator.costs.layers import Target
from simulator.specs.kernels import Provenance
from simulator.specs.model import GroupedQueryAttention

_SLACK = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class LargestLoad:
    """The most that one iteration of an instance is asked for."""

    sequences: float
    """Decoding sequences of the instance [1]."""
    query_tokens: int
    """New tokens of each of them [tokens]."""
    batched_tokens: float
    """Most tokens of an iteration of one attention replica, prompts included [tokens]."""
    context_tokens: float
    """Longest context [tokens]."""
    prompt_tokens: float
    """Longest prompt [tokens]."""


def departures(target: Target, load: LargestLoad) -> tuple[str, ...]:
    """One sentence for each kernel whose fitted range the load leaves."""
    return tuple(
        f"{kernel}: {name} {_number(value)} is outside the fitted range "
        f"{_number(low)} to {_number(high)}"
        for kernel, origin, values in _questions(target, load)
        for name, (low, high) in origin.fit_range.items()
        if (value := values.get(name)) is not None and not low / _SLACK <= value <= high * _SLACK
    )


def _questions(
    target: Target, load: LargestLoad
) -> Iterator[tuple[str, Provenance, Mapping[str, float]]]:
    """Kernels with what they are asked for at most, under the names of their fitted ranges."""
    model, ranks, kernels = target.model, target.parallelism, target.profile.kernels
    choice = target.profile.kernel_choice[target.precision]
    replica = max(load.sequences / ranks.data, 1.0)
    attention = model.attention
    heads = max(attention.num_heads / ranks.tensor, 1.0)
    shape: dict[str, float] = {"num_heads": heads}
    if isinstance(attention, GroupedQueryAttention):
        shape["num_key_value_heads"] = max(attention.num_kv_heads / ranks.tensor, 1.0)
    kv = target.kv_precision
    if isinstance(attention, GroupedQueryAttention):
        decode = kernels.decode_attention[kv].of_width(attention.head_dim).provenance
        prefill = kernels.prefill_attention[kv].of_width(attention.head_dim).provenance
    else:
        decode = kernels.latent_decode_attention[kv].provenance
        prefill = kernels.latent_prefill_attention[kv].provenance
    yield (
        f"matrix products ({choice.gemm})",
        kernels.gemm[choice.gemm].provenance,
        {"m": max(replica * load.query_tokens, load.batched_tokens)},
    )
    yield (
        "attention over the cache",
        decode,
        {"batch_size": replica, "step": load.context_tokens, **shape},
    )
    yield (
        "attention of prompts",
        prefill,
        {"isl": load.prompt_tokens, **shape},
    )
    if model.experts is not None:
        experts = model.experts
        yield (
            f"experts ({choice.moe})",
            kernels.moe[choice.moe].provenance,
            {
                "num_tokens": load.sequences * load.query_tokens,
                "hidden_size": model.hidden_size,
                "inter_size": experts.intermediate,
                "topk": experts.experts_per_token,
                "num_experts": experts.num_experts,
                "moe_tp_size": ranks.expert_tensor,
                "moe_ep_size": ranks.expert,
            },
        )
        if ranks.data > 1:
            exchange = kernels.expert_exchange.provenance
            yield "expert exchange", exchange, {"ranks": ranks.tensor * ranks.data}
    if ranks.tensor > 1:
        largest = kernels.all_reduce[-1]
        measured = largest.provenance.model_copy(
            update={"fit_range": {"ranks": (kernels.all_reduce[0].ranks, largest.ranks)}}
        )
        yield "all-reduce", measured, {"ranks": ranks.tensor}


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
