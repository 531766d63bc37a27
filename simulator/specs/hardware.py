"""A GPU, its links and the fitted cost of its kernels and of the engine's software.

One YAML under ``hardware_profiles/`` is one :class:`HardwareProfile`. Datasheet rates stand
beside fitted coefficients; every fitted entry carries its own provenance, so that a projection can
say what it rests on.
"""

import math
from collections.abc import Mapping
from typing import Literal, Self, TypeVar

from pydantic import Field

from simulator.base import FrozenModel
from simulator.specs.kernels import (
    CollectiveFit,
    DecodeAttentionFit,
    ExchangeFit,
    GemmFit,
    MoeFit,
    PrefillAttentionFit,
)
from simulator.specs.training_fit import TrainingFit

Precision = Literal["bf16", "fp8", "fp4", "mxfp4"]
"""What a user asks for; a profile maps it to the kernels that engines run. ``mxfp4`` stores the
routed experts in 4 bits and everything else in 16, as gpt-oss is published."""

KernelPrecision = Literal["bf16", "fp8", "fp8_block", "nvfp4", "mxfp4", "mxfp4_mxfp8"]
"""What a kernel table measures: ``fp8`` scales per tensor, ``fp8_block`` per 128 x 128 block,
``mxfp4`` are 4-bit weights with 16-bit activations and ``mxfp4_mxfp8`` with 8-bit ones; both of
the last are kernels of experts only."""

CachePrecision = Literal["bf16", "fp8"]
"""Precision of the KV cache."""

Name = TypeVar("Name", bound=str)
Fit = TypeVar("Fit", DecodeAttentionFit, PrefillAttentionFit, MoeFit)

PositiveFloat = Field(gt=0)


class Device(FrozenModel):
    """Datasheet rates of one GPU (dense, no sparsity)."""

    peak_flops_per_s: dict[Precision, float]
    """Peak dense tensor throughput by precision [FLOP/s]."""
    hbm_bytes: float = PositiveFloat
    """Memory of one GPU [bytes]."""
    hbm_bytes_per_s: float = PositiveFloat
    """Memory bandwidth of one GPU [bytes/s]."""
    sm_count: int = Field(gt=0)
    """Streaming multiprocessors, each of which computes one tile of a product at a time [1]."""
    source: str
    """Datasheet or file the rates come from."""


class Network(FrozenModel):
    """Links of one GPU, one direction each."""

    scale_up_gpus: int = Field(gt=0)
    """GPUs in one NVLink domain [1]."""
    node_gpus: int = Field(gt=0)
    """GPUs in one host [1]."""
    scale_up_bytes_per_s: float = PositiveFloat
    """NVLink rate of one GPU [bytes/s]."""
    scale_up_latency_s: float = Field(ge=0)
    """Latency of NVLink that each doubling of the ranks of a collective adds [s]."""
    scale_out_bytes_per_s: float = PositiveFloat
    """Network rate of one GPU beyond the NVLink domain [bytes/s]."""
    scale_out_latency_s: float = Field(ge=0)
    """Latency that a collective adds when it leaves the NVLink domain [s]."""
    host_bytes_per_s: float = PositiveFloat
    """Rate between GPU and host memory [bytes/s]."""
    source: str
    """Datasheet or file the rates come from."""


class KernelChoice(FrozenModel):
    """Kernels that an engine runs when a user asks for a precision."""

    gemm: KernelPrecision
    """Kernel of dense matrix products."""
    moe: KernelPrecision
    """Kernel of the experts."""


class Kernels(FrozenModel):
    """Fitted kernels of one GPU, by the precision that was measured."""

    gemm: dict[KernelPrecision, GemmFit]
    """Dense matrix products."""
    decode_attention: dict[CachePrecision, DecodeAttentionFit]
    """Attention over a cache of grouped-query heads."""
    prefill_attention: dict[CachePrecision, PrefillAttentionFit]
    """Attention of prompts with grouped-query heads."""
    latent_decode_attention: dict[CachePrecision, DecodeAttentionFit]
    """Attention over a cache of latents."""
    latent_prefill_attention: dict[CachePrecision, PrefillAttentionFit]
    """Attention of prompts with latent heads."""
    moe: dict[KernelPrecision, MoeFit]
    """Grouped matrix products of experts."""
    all_reduce: tuple[CollectiveFit, ...] = Field(min_length=1)
    """All-reduce by number of ranks, ascending."""
    expert_exchange: ExchangeFit
    """Dispatch and combine of tokens among expert ranks."""


class EngineSoftware(FrozenModel):
    """CPU work of the inference engine, and kernels that no table holds.

    ``simulator.calibration.software`` fits what published serving measurements can tell.
    """

    step_s: float = Field(ge=0)
    """Work of one iteration that scheduling ahead cannot hide: sampling, input copies [s]."""
    request_s: float = Field(ge=0)
    """The same, for each running sequence [s]."""
    synchronous_step_s: float = Field(default=0.0, ge=0)
    """What an iteration takes more if the engine schedules while the GPU waits [s]."""
    synchronous_request_s: float = Field(default=0.0, ge=0)
    """The same, for each running sequence [s]."""
    layer_s: float = 0.0
    """Small kernels of one layer (norms, rotary embedding, cache write, activation), less the
    graph launches that kernel tables hold and a graph of the whole model does not pay [s]."""
    quantise_s: float = Field(default=0.0, ge=0)
    """Quantising the input of one 4-bit matrix product, a kernel of its own [s]."""
    speculative_round_s: float = Field(ge=0)
    """What a speculative round adds to an iteration [s]."""
    verify_token_s: float = Field(ge=0)
    """Rejection sampling of one verified token [s]."""
    draft_pass_s: float = Field(ge=0)
    """Least time of one forward pass of the drafter, inside the captured range [s]."""
    captured_tokens: int = Field(gt=0)
    """Tokens of an iteration up to which CUDA graphs are captured [tokens]."""
    prompt_layer_s: float = Field(default=0.0, ge=0)
    """What one layer takes more in an iteration that computes prompts beyond the captured range:
    kernels launched from the CPU, and whatever else decoding alone does not show [s]."""
    eager_step_s: float = Field(ge=0)
    """Least time of the target's forward pass beyond the captured range [s]."""
    eager_draft_pass_s: float = Field(ge=0)
    """Least time of one forward pass of the drafter beyond the captured range [s]."""
    ngram_request_s: float = Field(ge=0)
    """Look-up of n-gram proposals for one sequence [s]."""
    ngram_context_token_s: float = Field(ge=0)
    """The same, for each token of its context [s]."""
    source: str
    """Where these come from: measured, fitted on what, or assumed."""

    def scheduled(self, is_ahead: bool) -> Self:
        """With scheduling ahead of the GPU, as these numbers are, or in turns with it."""
        if is_ahead:
            return self
        return self.model_copy(
            update={
                "step_s": self.step_s + self.synchronous_step_s,
                "request_s": self.request_s + self.synchronous_request_s,
            }
        )


class ModelError(FrozenModel):
    """How far prices are off: standard deviation of log(measured / modelled) of each kind [1].

    Taken over fitted cases of ``rollcast validate``, each model left out of the fit in turn where
    possible; what was only validated has no part in it. Training states its own in ``training``.
    """

    generation: float = Field(ge=0, le=2)
    """Iterations of the engine."""
    speculation: float = Field(ge=0, le=2)
    """Rounds that verify, relative to rounds that decode."""
    weight_sync: float = Field(ge=0, le=2)
    """Hand-over of weights."""
    source: str
    """Cases that these come from, or that they are assumed."""


class HardwareProfile(FrozenModel):
    """One GPU with its links, kernels, engine software and training rates."""

    schema_version: Literal[1] = 1
    """Version of this document's schema [1]."""
    name: str
    """Name that scenarios use."""
    description: str
    """One line for people."""
    device: Device
    """Datasheet rates."""
    network: Network
    """Links."""
    kernel_choice: dict[Precision, KernelChoice]
    """Kernels behind each precision that the GPU supports."""
    kernels: Kernels
    """Fitted kernels."""
    software: EngineSoftware
    """Engine software."""
    training: TrainingFit
    """Coefficients of training."""
    """Training rates."""
    model_error: ModelError
    """How far the prices are off."""

    def ideal(self) -> Self:
        """The envelope of the hardware: kernels at their fitted rates, launched in no time, and
        experts loaded evenly.

        What a collective cannot avoid is the latency of its links. Used for opportunity studies;
        no engine reaches it.
        """
        latency_s = self.network.scale_up_latency_s
        kernels = self.kernels
        return self.model_copy(
            update={
                "kernels": Kernels(
                    gemm={
                        name: fit.model_copy(update={"launch_s": 0.0})
                        for name, fit in kernels.gemm.items()
                    },
                    decode_attention=_ideal(kernels.decode_attention),
                    prefill_attention=_ideal(kernels.prefill_attention),
                    latent_decode_attention=_ideal(kernels.latent_decode_attention),
                    latent_prefill_attention=_ideal(kernels.latent_prefill_attention),
                    moe=_ideal(kernels.moe),
                    all_reduce=tuple(
                        fit.model_copy(update={"launch_s": latency_s * math.log2(fit.ranks)})
                        for fit in kernels.all_reduce
                    ),
                    expert_exchange=kernels.expert_exchange.model_copy(
                        update={"launch_s": 2.0 * latency_s, "rank_s": 2.0 * latency_s}
                    ),
                )
            }
        )


def _ideal(fits: Mapping[Name, Fit]) -> dict[Name, Fit]:
    return {name: fit.ideal() for name, fit in fits.items()}
