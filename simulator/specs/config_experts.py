"""Experts in a Hugging Face config: how many, how wide, and in which layers.

Every family of models invented its own keys; this is the table of synonyms. Two keys that mean
the same and differ are refused, and so is a sign of experts under a name not listed here.
"""

from simulator.specs.config_reader import ConfigReader
from simulator.specs.model import Experts

_EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "experts_per_token",
    "num_experts_per_token",
    "top_k_experts",
    "moe_top_k",
    "moe_k",
)
_EXPERT_WIDTHS = ("moe_intermediate_size", "expert_intermediate_size")
_SHARED_COUNTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
_SHARED_WIDTHS = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)


def experts_of_a_layer(reader: ConfigReader) -> Experts | None:
    """Experts of one layer, or ``None`` for a dense model."""
    num_experts = reader.count(*_EXPERT_COUNTS)
    if num_experts == 0:
        _refuse_unknown_experts(reader)
        return None
    experts_per_token = reader.size(*_EXPERTS_PER_TOKEN)
    if experts_per_token > num_experts:
        raise reader.refusal(
            f"num_experts_per_tok must be at most the {num_experts} experts that there are, got "
            f"{experts_per_token}"
        )
    # Mixtral and gpt-oss have no second width: intermediate_size is the expert's.
    intermediate = reader.optional_size(*_EXPERT_WIDTHS) or reader.size("intermediate_size")
    shared_width = next((reader.count(key) for key in _SHARED_WIDTHS if reader.has(key)), None)
    num_shared = reader.count(*_SHARED_COUNTS, default=1 if shared_width else 0)
    if shared_width is None:
        shared_width = intermediate
    if shared_width == 0:
        num_shared = 0
    return Experts(
        num_experts=num_experts,
        experts_per_token=experts_per_token,
        intermediate=intermediate,
        num_shared_experts=num_shared,
        shared_intermediate=shared_width if num_shared else 0,
    )


def count_expert_layers(reader: ConfigReader, num_layers: int) -> int:
    """How many layers have experts, by every rule that the config states at once."""
    first = reader.count("first_k_dense_replace")
    step = reader.optional_size("decoder_sparse_step", "interleave_moe_layer_step") or 1
    dense = {
        reader.whole_number("mlp_only_layers", layer, smallest=0)
        for layer in reader.items("mlp_only_layers") or []
    }
    types = reader.items("mlp_layer_types", num_layers) or ["sparse"] * num_layers
    if any(layer_type not in ("dense", "sparse") for layer_type in types):
        raise reader.refusal("mlp_layer_types must say dense or sparse for each layer")
    if isinstance(reader.value("moe_layer_freq"), list | tuple):
        listed = reader.items("moe_layer_freq", num_layers) or []
        frequent = [layer for layer in range(num_layers) if listed[layer]]
    else:
        frequent = list(range(0, num_layers, reader.optional_size("moe_layer_freq") or 1))
    return sum(
        layer >= first
        and (layer + 1) % step == 0
        and layer not in dense
        and types[layer] == "sparse"
        for layer in frequent
    )


def _refuse_unknown_experts(reader: ConfigReader) -> None:
    """A count of experts under an unknown name must not turn into a dense model."""
    for key in sorted(reader.keys()):
        value = reader.value(key)
        # True is an int too, and says nothing of a number.
        if "expert" in key and type(value) is int and value > 0:
            raise reader.refusal(
                f"{key} suggests experts, but none of {', '.join(_EXPERT_COUNTS)} says how many"
            )
