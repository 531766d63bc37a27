"""How the inference engine is set up: precision, sharding, batch limits, software."""

from typing import Annotated, Literal

from pydantic import Field

from simulator.base import FrozenModel
from simulator.specs.hardware import Precision

AutoRanks = Literal["auto"] | Annotated[int, Field(gt=0, le=4_096)]
KvPrecision = Literal["bf16", "fp8"]


class Engine(FrozenModel):
    """One generation engine. ``auto`` means: what makes the plain baseline fastest and fits."""

    precision: Precision = "bf16"
    """Precision of weights and matrix products."""
    kv_precision: KvPrecision = "bf16"
    """Precision of the KV cache."""
    tensor_parallel: AutoRanks = Field(default="auto")
    """Ways that attention and dense layers are split, or ``auto`` [ranks]."""
    data_parallel: AutoRanks = Field(default="auto")
    """Attention replicas in one instance that share its experts, or ``auto`` [ranks]."""
    expert_parallel: AutoRanks = Field(default="auto")
    """Ways that experts are divided among the instance's GPUs, or ``auto`` [ranks]."""
    pipeline_parallel: int = Field(default=1, gt=0, le=64)
    """Pipeline stages of one instance [ranks]."""
    max_instance_gpus: int | None = Field(default=None, gt=0)
    """Largest instance that ``auto`` considers; default: the NVLink domain [1]."""
    max_num_seqs: int | None = Field(default=1_024, gt=0)
    """Sequences that one attention replica runs at once; null: only memory limits [1]."""
    max_num_batched_tokens: int = Field(default=8_192, gt=0, le=10_000_000)
    """Tokens that one iteration of one attention replica may process [tokens]."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of a GPU's memory that the engine may use [1]."""
    prefix_caching: bool = True
    """Whether answers of one group share the prefill of their prompt."""
    software: Literal["measured", "ideal"] = "measured"
    """``measured`` charges launches and CPU work; ``ideal`` is the envelope without them."""
    async_scheduling: bool = True
    """Whether the engine schedules an iteration while the GPU computes the one before: vLLM from
    0.14 on by default, SGLang, TensorRT-LLM."""
    captured_tokens: int | None = Field(default=None, gt=0)
    """CUDA-graph capture limit, tokens per iteration; default: the profile's [tokens]."""
