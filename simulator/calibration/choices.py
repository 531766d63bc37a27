"""Which measured table stands for which kernel, profile by profile, and why.

Traps that these choices avoid: vLLM measured ``fp8_block`` products eagerly, so their floor is the
CPU's launch time; vLLM's and TensorRT-LLM's per-tensor ``fp8`` products include an unfused
quantisation; vLLM's GB200 ``bfloat16`` products come from a throttled machine. Routing is
``power_law_1.01``, for which the tables time the most loaded rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simulator.errors import CalibrationError
from simulator.specs.hardware import CachePrecision, KernelPrecision


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A table and the rows of it that are one kernel."""

    table: str
    """Family, back end, version and file; or a file of the user's own."""
    dtype: str
    """Name of the precision in the table."""
    kernel: str = ""
    """Part of the kernel's name; empty for all."""


@dataclass(frozen=True, slots=True)
class AttentionChoice:
    """Tables of attention with grouped queries."""

    prefill: str
    """Table of prompts."""
    decode: str
    """Table of attention over a cache."""
    kernel: str = ""
    """Part of the kernel's name; empty for all."""
    caches: tuple[CachePrecision, ...] = ("bf16", "fp8")
    """Precisions of the cache."""
    widths: tuple[int, ...] = (128, 64, 256)
    """Widths of heads, the first of which a profile leads with [1]."""
    least_group: int = 1
    """Fewest query heads a KV head, over a cache [1]."""


@dataclass(frozen=True, slots=True)
class LatentChoice:
    """Tables of latent attention."""

    prefill: str
    """Table of prompts."""
    decode: str
    """Table of attention over a cache."""
    caches: tuple[CachePrecision, ...] = ("bf16", "fp8")
    """Precisions of the cache."""


@dataclass(frozen=True, slots=True)
class MessageChoice:
    """A table of messages between GPUs."""

    gpu: str
    """Folder of the GPU, which may be another one of the same links."""
    table: str
    """Table."""
    ranks: tuple[int, ...] = ()
    """Numbers of ranks that are taken from it; empty for all [1]."""


@dataclass(frozen=True, slots=True)
class GpuChoices:
    """Tables of one profile."""

    gpu: str
    """Folder of the GPU in the package."""
    gemm: Mapping[KernelPrecision, TableChoice]
    moe: Mapping[KernelPrecision, TableChoice]
    attention: AttentionChoice
    latent: LatentChoice
    all_reduce: tuple[MessageChoice, ...]
    exchange: MessageChoice


BACKENDS = ("vllm", "sglang")
"""Engines whose kernels a profile can stand for; the first is the default."""

_VLLM = "vllm/0.24.0"
_SGLANG = "sglang/0.5.14"
_TRTLLM = "trtllm/1.3.0rc20"
_SGLANG_EXPERTS = "sglang_flashinfer_trtllm"
_NVLINK_RACK = "gb300"
"""The GPU with 8 and 16 measured ranks of a rack-wide NVLink domain; GB200's links are the same."""


def _gemm(table: str, dtype: str) -> TableChoice:
    return TableChoice(f"gemm/{table}/gemm_perf", dtype)


def _moe(table: str, dtype: str, kernel: str = "") -> TableChoice:
    return TableChoice(f"moe/{table}/moe_perf", dtype, kernel)


def _attention(backend: str) -> AttentionChoice:
    folder = f"attention/{backend}"
    return AttentionChoice(
        f"{folder}/context_attention_perf", f"{folder}/generation_attention_perf"
    )


def _latent(backend: str) -> LatentChoice:
    return LatentChoice(f"mla/{backend}/context_mla_perf", f"mla/{backend}/generation_mla_perf")


def _reduce(gpu: str, backend: str, *ranks: int) -> MessageChoice:
    return MessageChoice(gpu, f"comm/{backend}/custom_allreduce_perf", ranks)


def _hopper(gpu: str) -> GpuChoices:
    return GpuChoices(
        gpu=gpu,
        gemm={
            "bf16": _gemm(_VLLM, "bfloat16"),
            "fp8": _gemm(_SGLANG, "fp8"),
            "fp8_block": _gemm(_TRTLLM, "fp8_block"),
        },
        moe={
            "bf16": _moe(_VLLM, "bfloat16", "triton"),
            "fp8_block": _moe(_VLLM, "fp8_block"),
            "mxfp4": _moe(_VLLM, "w4a16_mxfp4", "gptoss"),
        },
        attention=_attention(_VLLM),
        latent=_latent(_TRTLLM),
        all_reduce=(_reduce(gpu, _VLLM),),
        exchange=MessageChoice(gpu, f"comm/{_VLLM}/moe_a2a_perf"),
    )


def _blackwell(gpu: str) -> GpuChoices:
    hopper = _hopper(gpu)
    return replace(
        hopper,
        gemm={**hopper.gemm, "nvfp4": _gemm(_SGLANG, "nvfp4")},
        moe={
            "bf16": _moe(_VLLM, "bfloat16", "trtllmbf16"),
            "fp8_block": _moe(_TRTLLM, "fp8_block", "deepgemm"),
            "nvfp4": _moe(_VLLM, "nvfp4", "monolithic"),
            # The kernels that vLLM runs too, where both were measured; vLLM's tables lack shapes.
            "mxfp4": _moe(_SGLANG, "w4a16_mxfp4", _SGLANG_EXPERTS),
            "mxfp4_mxfp8": _moe(_SGLANG, "w4a8_mxfp4_mxfp8", _SGLANG_EXPERTS),
        },
    )


_RACK_EXCHANGE = MessageChoice("gb200", "comm/trtllm/1.3.0rc10/trtllm_alltoall_perf")

_ON_VLLM: Mapping[str, GpuChoices] = {
    "a100_sxm": GpuChoices(
        gpu="a100_sxm",
        gemm={"bf16": _gemm("vllm/0.14.0", "bfloat16")},
        moe={"bf16": _moe("vllm/0.14.0", "bfloat16")},
        # Without grouped queries FlashAttention 2 does not split a cache among blocks.
        attention=replace(
            _attention("vllm/0.14.0"), caches=("bf16",), widths=(128,), least_group=2
        ),
        latent=replace(_latent("trtllm/1.0.0"), caches=("bf16",)),
        all_reduce=(_reduce("a100_sxm", "vllm/0.14.0"),),
        exchange=MessageChoice("h100_sxm", f"comm/{_VLLM}/moe_a2a_perf"),
    ),
    "h100_sxm": _hopper("h100_sxm"),
    "h200_sxm": _hopper("h200_sxm"),
    "b200_sxm": _blackwell("b200_sxm"),
    "gb200": replace(
        _blackwell("gb200"),
        gemm={**_blackwell("gb200").gemm, "bf16": _gemm(_SGLANG, "bfloat16")},
        all_reduce=(_reduce("gb200", _VLLM), _reduce(_NVLINK_RACK, "vllm/0.27.0", 8, 16)),
        exchange=_RACK_EXCHANGE,
    ),
    "gb300": replace(
        _blackwell("gb300"),
        all_reduce=(_reduce("gb300", "vllm/0.27.0"),),
        exchange=_RACK_EXCHANGE,
    ),
}


def _on_sglang(vllm: GpuChoices) -> GpuChoices:
    is_hopper = "nvfp4" not in vllm.gemm
    experts = "fused_moe_triton" if is_hopper else _SGLANG_EXPERTS
    moe_dtypes: dict[KernelPrecision, str] = {
        "bf16": "bfloat16",
        "fp8_block": "fp8_block",
        "nvfp4": "nvfp4",
        "mxfp4": "w4a16_mxfp4",
        "mxfp4_mxfp8": "w4a8_mxfp4_mxfp8",
    }
    gemm_dtypes: dict[KernelPrecision, str] = {
        "bf16": "bfloat16",
        "fp8": "fp8",
        "fp8_block": "fp8_block",
        "nvfp4": "nvfp4",
    }
    reductions = [_reduce(vllm.gpu, _SGLANG)]
    if vllm.gpu == "gb200":
        reductions.append(_reduce(_NVLINK_RACK, _SGLANG, 8, 16))
    return replace(
        vllm,
        gemm={name: _gemm(_SGLANG, gemm_dtypes[name]) for name in vllm.gemm},
        moe={name: _moe(_SGLANG, moe_dtypes[name], experts) for name in vllm.moe},
        attention=replace(_attention(_SGLANG), kernel="fa3" if is_hopper else "trtllm_mha"),
        latent=_latent(_SGLANG),
        all_reduce=tuple(reductions),
    )


_ON_SGLANG: Mapping[str, GpuChoices] = {
    gpu: _on_sglang(choices) for gpu, choices in _ON_VLLM.items() if gpu != "a100_sxm"
}

CHOICES: Mapping[str, GpuChoices] = {
    **_ON_VLLM,
    **{f"{gpu}_sglang": choices for gpu, choices in _ON_SGLANG.items()},
}
"""Profiles that ``calibrate`` fits."""

SCALED: Mapping[str, str] = {"h800_sxm": "h100_sxm", "h20_sxm": "h100_sxm"}
"""Profiles that no table exists of, and the one that each is scaled from by the datasheets."""


def known_profiles() -> tuple[str, ...]:
    """Names of all profiles that ``calibrate`` can write, those that others rest on first."""
    return (*CHOICES, *SCALED)


def profile_name(gpu: str, backend: str) -> str:
    """Name of the profile of a GPU under an engine.

    Raises
    ------
    CalibrationError
        If there is no such profile.
    """
    if backend not in BACKENDS:
        raise CalibrationError(f"no back end {backend!r}; known are {', '.join(BACKENDS)}")
    name = gpu if backend == BACKENDS[0] else f"{gpu}_{backend}"
    if name in known_profiles():
        return name
    known = (*_ON_VLLM, *SCALED) if backend == BACKENDS[0] else tuple(_ON_SGLANG)
    raise CalibrationError(f"no tables of {gpu} on {backend}; known are {', '.join(known)}")
