"""What fits on a GPU of a generation instance: weights, drafter, activations, and the KV cache.

The engine may use a share of the GPU's memory; weights, drafter and working memory come off it
and the rest is KV cache. All figures are bytes of one GPU.
"""

from dataclasses import dataclass

from simulator.costs.drafting import DraftNetwork
from simulator.costs.layers import ACTIVATION_BYTES, Target
from simulator.specs.engine import Engine
from simulator.units import GIB, format_gib

_GRAPH_AND_RUNTIME_BYTES = 2.0 * GIB
"""CUDA context, graphs and communication buffers; vLLM and NCCL take 1-3 GiB (assumed)."""
_LIVE_ACTIVATIONS = 8.0
"""Hidden-sized and width-sized tensors alive at once in one layer (assumed) [1]."""
_LOGIT_BYTES = 4.0


@dataclass(frozen=True, slots=True)
class GenerationMemory:
    """Memory of one GPU of an instance [bytes]."""

    usable_bytes: float
    """What the engine may use."""
    weight_bytes: float
    """Target weights."""
    drafter_bytes: float
    """Drafter weights."""
    working_bytes: float
    """Activations, logits, graphs and buffers."""
    kv_bytes_per_token: float
    """KV bytes that one token of an attention replica takes on this GPU, drafter included."""
    attention_replicas: int
    """Attention replicas in the instance, each with a cache of its own [1]."""

    @property
    def kv_cache_bytes(self) -> float:
        """What is left for the KV cache; negative if the weights alone do not fit."""
        return self.usable_bytes - self.weight_bytes - self.drafter_bytes - self.working_bytes

    @property
    def kv_tokens(self) -> float:
        """Tokens that the caches of the whole instance hold [tokens]."""
        tokens = self.kv_cache_bytes / self.kv_bytes_per_token
        return max(tokens, 0.0) * self.attention_replicas

    def missing_bytes(self, longest_tokens: float) -> float:
        """Bytes that one GPU lacks to hold one sequence of ``longest_tokens``; 0 if it fits."""
        return max(longest_tokens * self.kv_bytes_per_token - self.kv_cache_bytes, 0.0)

    def describe(self) -> str:
        """The budget of one GPU in words."""
        return (
            f"weights {format_gib(self.weight_bytes)}, drafter {format_gib(self.drafter_bytes)}, "
            f"working memory {format_gib(self.working_bytes)} of "
            f"{format_gib(self.usable_bytes)} usable"
        )


def generation_memory(
    target: Target, drafter: DraftNetwork | None, engine: Engine, typical_tokens: float
) -> GenerationMemory:
    """Memory budget of one GPU of a generation instance.

    Parameters
    ----------
    typical_tokens
        Length at which the cache of a token is averaged over layers with and without a window
        [tokens].
    """
    ranks = target.parallelism
    kv_per_token = _kv_bytes_per_token(target, ranks.tensor, typical_tokens) / ranks.pipeline
    drafter_bytes = 0.0
    if drafter is not None:
        drafter_ranks = drafter.target.parallelism
        width = 2.0 if drafter.target.precision in ("bf16", "mxfp4") else 1.0
        drafter_bytes = width * drafter.parameters / drafter_ranks.tensor
        if drafter.target.model.is_moe:
            drafter_bytes = weight_bytes_per_gpu(drafter.target)
        kv_per_token += _kv_bytes_per_token(drafter.target, drafter_ranks.tensor, typical_tokens)
    return GenerationMemory(
        usable_bytes=engine.gpu_memory_utilization * target.profile.device.hbm_bytes,
        weight_bytes=weight_bytes_per_gpu(target),
        drafter_bytes=drafter_bytes,
        working_bytes=_working_bytes(target, engine),
        kv_bytes_per_token=kv_per_token,
        attention_replicas=ranks.data,
    )


def weight_bytes_per_gpu(target: Target) -> float:
    """Weights of one GPU: experts over all ranks, everything else over the tensor ranks [bytes]."""
    model, ranks = target.model, target.parallelism
    total = model.weight_bytes(target.precision)
    experts = model.expert_weight_bytes(target.precision)
    expert_ranks = ranks.expert * ranks.expert_tensor
    return ((total - experts) / ranks.tensor + experts / expert_ranks) / ranks.pipeline


def _kv_bytes_per_token(target: Target, tensor_ranks: int, typical_tokens: float) -> float:
    """KV bytes of a token on one GPU: heads are split, and copied once there are none left."""
    attention = target.model.attention
    whole = float(target.model.kv_bytes(typical_tokens, target.kv_precision)) / typical_tokens
    if attention.kind == "latent":
        return whole
    return whole * max(1.0 / tensor_ranks, 1.0 / attention.num_kv_heads)


def _working_bytes(target: Target, engine: Engine) -> float:
    model, ranks = target.model, target.parallelism
    width = float(model.hidden_size)
    if model.experts is not None:
        width += model.experts.experts_per_token * model.experts.intermediate
    elif model.dense_intermediate:
        width += 2.0 * model.dense_intermediate / ranks.tensor
    activations = _LIVE_ACTIVATIONS * ACTIVATION_BYTES * engine.max_num_batched_tokens * width
    rows = min(engine.max_num_seqs or engine.max_num_batched_tokens, engine.max_num_batched_tokens)
    logits = _LOGIT_BYTES * rows * model.vocab_size / ranks.tensor
    return _GRAPH_AND_RUNTIME_BYTES + activations + logits
