"""Which measured table stands for which kernel, GPU by GPU, and why.

Traps that these choices avoid: vLLM measured ``fp8_block`` products eagerly, so their floor is the
CPU's launch time; vLLM's and TensorRT-LLM's per-tensor ``fp8`` products include an unfused
quantisation; vLLM's GB200 ``bfloat16`` products come from a throttled machine. Routing is
``power_law_1.01``, for which the tables time the most loaded rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.specs.hardware import KernelPrecision


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table and the rows of it that are one kernel."""

    table: str
    """Family, back end, version and file."""
    dtype: str
    """Name of the precision in the table."""
    kernel: str = ""
    """Part of the kernel's name; empty for all."""


@dataclass(frozen=True, slots=True)
class GpuChoices:
    """Tables of one GPU."""

    gemm: Mapping[KernelPrecision, TableChoice]
    moe: Mapping[KernelPrecision, TableChoice]
    attention: str
    """Back end and version of attention with grouped queries."""
    latent: str
    """Back end and version of latent attention."""
    all_reduce: str
    """Back end and version of the all-reduce."""
    exchange: str
    """Table of dispatch and combine."""


_VLLM = "vllm/0.24.0"
_SGLANG = "sglang/0.5.14"
_TRTLLM = "trtllm/1.3.0rc20"

CHOICES: Mapping[str, GpuChoices] = {
    "h100_sxm": GpuChoices(
        gemm={
            "bf16": TableChoice(f"gemm/{_VLLM}/gemm_perf", "bfloat16"),
            "fp8": TableChoice(f"gemm/{_SGLANG}/gemm_perf", "fp8"),
            "fp8_block": TableChoice(f"gemm/{_TRTLLM}/gemm_perf", "fp8_block"),
        },
        moe={
            "bf16": TableChoice(f"moe/{_VLLM}/moe_perf", "bfloat16", "triton"),
            "fp8_block": TableChoice(f"moe/{_VLLM}/moe_perf", "fp8_block"),
        },
        attention=_VLLM,
        latent=_TRTLLM,
        all_reduce=_VLLM,
        exchange=f"comm/{_VLLM}/moe_a2a_perf",
    ),
    "gb200": GpuChoices(
        gemm={
            "bf16": TableChoice(f"gemm/{_SGLANG}/gemm_perf", "bfloat16"),
            "fp8": TableChoice(f"gemm/{_SGLANG}/gemm_perf", "fp8"),
            "fp8_block": TableChoice(f"gemm/{_TRTLLM}/gemm_perf", "fp8_block"),
            "nvfp4": TableChoice(f"gemm/{_SGLANG}/gemm_perf", "nvfp4"),
        },
        moe={
            "bf16": TableChoice(f"moe/{_VLLM}/moe_perf", "bfloat16", "trtllmbf16"),
            "fp8_block": TableChoice(f"moe/{_TRTLLM}/moe_perf", "fp8_block", "deepgemm"),
            "nvfp4": TableChoice(f"moe/{_VLLM}/moe_perf", "nvfp4", "monolithic"),
        },
        attention=_VLLM,
        latent=_TRTLLM,
        all_reduce=_VLLM,
        exchange="comm/trtllm/1.3.0rc10/trtllm_alltoall_perf",
    ),
}
"""GPUs that ``calibrate`` knows."""
