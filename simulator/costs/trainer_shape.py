"""What pricing a trainer needs of a model, counted once."""

from dataclasses import dataclass
from functools import lru_cache

from simulator.costs.flops import forward_flops
from simulator.specs.model import GroupedQueryAttention, ModelSpec


@dataclass(frozen=True, slots=True)
class TrainedShape:
    """Counts of one model."""

    dense_parameters: float
    """Everything but routed experts [1]."""
    expert_parameters: float
    """Routed experts [1]."""
    mtp_parameters: float
    """Multi-token-prediction layers [1]."""
    dense_matmul_parameters: float
    """Weights outside experts and head that a token is multiplied with [1]."""
    active_expert_parameters: float
    """Weights of experts that a token is multiplied with [1]."""
    attention_width: float
    """Values of queries, keys, values and output of one token in one layer [1]."""
    head_width: float
    """Width of an attention head; latent heads are wide enough [1]."""
    pair_flops: float
    """An attended pair, over all layers without a window [FLOP]."""
    windowed_pair_flops: float
    """An attended pair, over all layers with a window [FLOP]."""


@lru_cache(maxsize=64)
def trained_shape(model: ModelSpec) -> TrainedShape:
    """Count what training prices of a model."""
    experts = float(model.expert_parameters)
    active = float(model.active_expert_parameters)
    attention = model.attention
    if isinstance(attention, GroupedQueryAttention):
        width = 2.0 * (attention.num_heads + attention.num_kv_heads) * attention.head_dim
        head = float(attention.head_dim)
    else:
        query = attention.qk_nope_head_dim + attention.qk_rope_head_dim
        width = 2.0 * attention.num_heads * (query + attention.v_head_dim)
        head = 128.0
    return TrainedShape(
        dense_parameters=float(model.parameters) - experts,
        expert_parameters=experts,
        mtp_parameters=float(model.mtp_parameters),
        dense_matmul_parameters=float(model.active_matmul_parameters) - active,
        active_expert_parameters=active,
        attention_width=width,
        head_width=head,
        pair_flops=float(forward_flops(model, 0, 1, 0, 0)),
        windowed_pair_flops=float(forward_flops(model, 0, 0, 0, 1)),
    )
