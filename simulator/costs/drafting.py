"""What proposing tokens costs: the drafter's forward passes, or a look-up on the CPU.

An EAGLE-3 head is one dense layer whose input joins a token embedding with a fused hidden state
(Li et al., arXiv 2503.01840); an MTP head is one layer of the target behind a projection
(DeepSeek-V3, arXiv 2412.19437, section 2.2); a draft model is any model. Drafting is sequential:
``k`` passes, the first over all tokens of the round before, the others over one token a sequence.
"""

from dataclasses import dataclass

import numpy as np

from simulator.costs.layers import (
    FloatArray,
    RankBatch,
    Target,
    attention_projections_s,
    attention_scores_s,
    dense_feedforward_s,
    elementwise_layers_s,
    expert_layers_s,
    head_s,
    tensor_reductions_s,
)
from simulator.costs.operators import gemm_s
from simulator.specs.model import GroupedQueryAttention, ModelSpec
from simulator.specs.parallelism import EngineParallelism
from simulator.specs.speculation import Drafter, Speculation

_EAGLE_HEAD_WIDTH = 128
_EAGLE_QUERIES_PER_KV_HEAD = 4


@dataclass(frozen=True, slots=True)
class DraftNetwork:
    """A drafting network on the instance: a small model and what feeds it."""

    target: Target
    """The drafter's layers, with its own sharding."""
    fusion_inputs: tuple[int, ...]
    """Input widths of the projections onto the hidden size that precede its layers [1]."""

    @property
    def parameters(self) -> float:
        """Weights that drafting adds: layers, head, projections; an embedding of its own only
        where no target's can be shared [1].
        """
        model = self.target.model
        fusion = sum(self.fusion_inputs) * model.hidden_size
        shares_embedding = bool(self.fusion_inputs) and not model.ties_embeddings
        return model.parameters - shares_embedding * model.embedding_parameters + fusion


def draft_network(
    speculation: Speculation, target: Target, draft_model: ModelSpec | None
) -> DraftNetwork | None:
    """The network that drafts, or ``None`` for n-gram look-up and plain decoding."""
    drafter = speculation.drafter
    hidden = target.model.hidden_size
    precision = drafter.precision or target.precision
    own_ranks = EngineParallelism(tensor=target.parallelism.drafter_tensor)
    match speculation.method:
        case "none" | "ngram":
            return None
        case "eagle3":
            model, ranks = _eagle_model(target.model, drafter), own_ranks
            fusion: tuple[int, ...] = (3 * hidden, hidden)
        case "mtp":
            model, ranks, fusion = _mtp_model(target.model), target.parallelism, (2 * hidden,)
        case "draft_model":
            if draft_model is None:
                raise ValueError("a draft model must be resolved before it is priced")
            model, ranks, fusion = draft_model, own_ranks, ()
    if not speculation.is_active:
        return None
    draft_target = Target(model, target.profile, ranks, precision, target.kv_precision)
    return DraftNetwork(draft_target, fusion)


def _eagle_model(model: ModelSpec, drafter: Drafter) -> ModelSpec:
    attention = model.attention
    if not isinstance(attention, GroupedQueryAttention):
        heads = max(model.hidden_size // _EAGLE_HEAD_WIDTH, 1)
        attention = GroupedQueryAttention(
            num_heads=heads,
            num_kv_heads=max(heads // _EAGLE_QUERIES_PER_KV_HEAD, 1),
            head_dim=_EAGLE_HEAD_WIDTH,
        )
    else:
        attention = attention.model_copy(update={"window_tokens": None, "windowed_layers": 0})
    width = drafter.intermediate or model.dense_intermediate or 3 * model.hidden_size
    return model.model_copy(
        update={
            "name": f"{model.name} EAGLE-3 head",
            "num_layers": 1,
            "num_dense_layers": 1,
            "num_expert_layers": 0,
            "experts": None,
            "attention": attention,
            "dense_intermediate": width,
            "vocab_size": min(drafter.vocab_size, model.vocab_size),
            "ties_embeddings": False,
            "num_mtp_layers": 0,
        }
    )


def _mtp_model(model: ModelSpec) -> ModelSpec:
    dense = 0 if model.is_moe else 1
    return model.model_copy(
        update={
            "name": f"{model.name} MTP head",
            "num_layers": 1,
            "num_dense_layers": dense,
            "num_expert_layers": 1 - dense,
            "num_mtp_layers": 0,
        }
    )


def draft_pass_s(
    network: DraftNetwork, batch: RankBatch, instance_tokens: FloatArray
) -> FloatArray:
    """Kernel seconds of one pass of the drafter over ``batch`` [s].

    Parameters
    ----------
    batch
        Sequences of one attention replica; ``query_tokens`` tokens each pass the layers, and one
        row a sequence passes the head.
    instance_tokens
        Tokens of all attention replicas, for a drafter with experts, shape ``(n,)`` [tokens].
    """
    target, tokens = network.target, batch.tokens
    hidden = target.model.hidden_size
    kernel = target.profile.kernel_choice[target.precision].gemm
    total = (
        attention_projections_s(target, tokens)
        + attention_scores_s(target, batch)
        + dense_feedforward_s(target, tokens)
        + expert_layers_s(target, tokens, instance_tokens)
        + tensor_reductions_s(target, tokens)
        + elementwise_layers_s(target, tokens)
        + head_s(target, batch.sequences)
    )
    for width in network.fusion_inputs:
        columns = hidden / target.parallelism.tensor
        total = total + gemm_s(target.profile, kernel, tokens, columns, width)
    return total


def one_token_each(batch: RankBatch) -> RankBatch:
    """The same sequences with one query token each and no prompts."""
    nothing = np.zeros_like(batch.sequences)
    return RankBatch(batch.sequences, batch.context_tokens, 1, nothing, nothing)
