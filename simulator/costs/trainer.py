"""Seconds of one pass of a trainer over a micro-batch, from its model, GPUs and sharding.

Everything is linear in what a data-parallel rank is given: tokens, attended pairs and micro-batches
have each a price on one GPU of one pipeline stage. Coefficients come from measured pre-training
(:mod:`simulator.specs.training_fit`); the equations are in ``docs/training.md``.
"""

from dataclasses import dataclass, field

import numpy as np

from simulator.costs.packing import FloatArray, Loads
from simulator.costs.trainer_links import TrainerHardware, exchange_s_per_token, gather_s
from simulator.costs.trainer_shape import TrainedShape, trained_shape
from simulator.specs.model import GroupedQueryAttention, ModelSpec
from simulator.specs.trainer import TrainerParallelism
from simulator.specs.training import Training

_ACTIVATION_BYTES = 2.0
_LOGIT_TRAFFIC_BYTES = 16.0
"""Four passes over 32-bit logits: written, maximum, sum, pick [bytes]."""
_FULL_HEAD_WIDTH = 128.0
"""Head width from which attention reaches its rate; exponentials bound it below [1]."""
_BACKWARD_MATRICES = 2.0
_BACKWARD_ATTENTION = 2.5
"""Five products in the backward pass of attention, two in the forward pass (FlashAttention-2,
arXiv 2307.08691, section 3)."""
_BACKWARD_TRAFFIC = 2.0
_TENSOR_COLLECTIVES = 4.0
"""All-gathers and reduce-scatters of a layer in one direction (Korthikanti et al., arXiv
2205.05198, section 4.2.2) [1]."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What one GPU of one pipeline stage takes for the units of a data-parallel rank [s]."""

    token_s: float = 0.0
    """A token that passes the layers and the output head."""
    pair_s: float = 0.0
    """An attended pair of the layers without a window."""
    windowed_pair_s: float = 0.0
    """An attended pair of the windowed layers."""
    micro_batch_s: float = 0.0
    """A micro-batch, however small."""

    def __add__(self, other: "Prices") -> "Prices":
        return Prices(
            self.token_s + other.token_s,
            self.pair_s + other.pair_s,
            self.windowed_pair_s + other.windowed_pair_s,
            self.micro_batch_s + other.micro_batch_s,
        )

    def seconds(self, loads: Loads) -> FloatArray:
        """Seconds of all micro-batches of each rank, one after another [s]."""
        return np.asarray(
            self.token_s * loads.tokens
            + self.pair_s * loads.pairs
            + self.windowed_pair_s * loads.windowed_pairs
            + self.micro_batch_s * loads.micro_batches
        )


@dataclass(frozen=True, slots=True)
class Trainer:
    """A model on the GPUs that train it."""

    model: ModelSpec
    hardware: TrainerHardware
    training: Training
    ranks: TrainerParallelism
    shape: TrainedShape = field(init=False, repr=False)
    """Counts of the model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", trained_shape(self.model))

    @property
    def window_tokens(self) -> int | None:
        """Tokens that a windowed layer attends to [tokens]."""
        attention = self.model.attention
        return attention.window_tokens if isinstance(attention, GroupedQueryAttention) else None

    def forward(self) -> Prices:
        """A forward pass, with the output head on every token."""
        matrices_s = self._matrices_s + self._head_s
        return self._pass(matrices_s, 1.0, _LOGIT_TRAFFIC_BYTES, 1.0)

    def forward_and_backward(self) -> Prices:
        """Forward pass, backward pass and what that computes again."""
        matrices_s = _BACKWARD_MATRICES * (self._matrices_s + self._head_s)
        backward = self._pass(
            matrices_s, _BACKWARD_TRAFFIC, _LOGIT_TRAFFIC_BYTES, _BACKWARD_ATTENTION
        )
        prices = self.forward() + backward
        match self.ranks.recompute:
            case "full":
                return prices + self._pass(self._matrices_s, 1.0, 0.0, 1.0)
            case "selective":
                return prices + self._attention(1.0)
            case "none":
                return prices

    def reduction_s(self, micro_batch_s: float) -> float:
        """Exposed time of gradients and weights among data-parallel ranks in a mini-batch [s].

        32-bit gradients are reduce-scattered and 16-bit weights gathered under the first and the
        last micro-batch; a tenth is never hidden (assumed: first and last bucket).
        """
        return _exposed_s(self._gather_s(4.0) + self._gather_s(2.0), micro_batch_s)

    def sharded_weights_s(self, directions: float, micro_batch_s: float) -> float:
        """Exposed time of gathering sharded weights in every micro-batch [s]."""
        if self.ranks.sharding == "optimizer":
            return 0.0
        return _exposed_s(directions * self._gather_s(2.0), micro_batch_s)

    def optimizer_s(self) -> float:
        """Traffic of the optimizer over its shard: 28 bytes a parameter, read and written [s]."""
        dense, experts = self.stage_parameters
        ranks = self.ranks
        shard = dense / (ranks.data * ranks.context) + experts / ranks.expert_data
        return 28.0 * shard / self.hardware.device.hbm_bytes_per_s

    @property
    def stage_parameters(self) -> tuple[float, float]:
        """Parameters of one GPU's stage, of dense layers and of experts, not sharded further."""
        model, ranks = self.model, self.ranks
        mtp = self.shape.mtp_parameters if self.training.trains_mtp else 0.0
        dense, experts = self.shape.dense_parameters, self.shape.expert_parameters
        if model.is_moe:
            experts += mtp
        else:
            dense += mtp
        return dense / ranks.tensor / ranks.pipeline, experts / ranks.expert / ranks.pipeline

    # -- parts of a pass, per token of a data-parallel rank ---------------------------------

    def _pass(
        self, matrices_s: float, traffic: float, logit_bytes: float, attention: float
    ) -> Prices:
        """One direction; ``traffic`` counts in units of the forward pass."""
        model, ranks, fit = self.model, self.ranks, self.hardware.fit
        experts = model.experts
        logits_s = logit_bytes * model.vocab_size * self._share / self._memory_rate
        token_s = matrices_s + logits_s + traffic * (self._dense_traffic_s + self._context_s)
        token_s += self._tensor_s
        launch_s = 0.0
        if experts is not None:
            token_s += traffic * self._expert_traffic_s + self._exchange_s
            kind = self.training.expert_kernels
            layer_s = getattr(fit.layer_launch_s, kind)
            layer_s += getattr(fit.expert_launch_s, kind) * experts.num_experts / ranks.expert
            layers = self._expert_layers / ranks.pipeline
            launch_s = traffic * layer_s * layers / (1.0 + _BACKWARD_TRAFFIC)
        return Prices(token_s=token_s, micro_batch_s=launch_s) + self._attention(attention)

    @property
    def _share(self) -> float:
        """Share of a rank's tokens and layers that one GPU works on [1]."""
        return 1.0 / (self.ranks.tensor * self.ranks.context * self.ranks.pipeline)

    @property
    def _memory_rate(self) -> float:
        return self.hardware.device.hbm_bytes_per_s

    @property
    def _mtp_layers(self) -> int:
        return self.model.num_mtp_layers if self.training.trains_mtp else 0

    @property
    def _expert_layers(self) -> int:
        return self.model.num_expert_layers + (self._mtp_layers if self.model.is_moe else 0)

    @property
    def _layers(self) -> int:
        return self.model.num_layers + self._mtp_layers

    @property
    def _matrix_rate(self) -> float:
        """FLOP/s of dense matrix products in the training precision."""
        fit, training = self.hardware.fit, self.training
        rate = self.hardware.device.peak_flops_per_s[training.precision]
        rate *= fit.matrix_efficiency[training.precision]
        is_block = training.precision == "fp8" and training.fp8_scaling == "block"
        return rate * fit.block_scaled if is_block else rate

    @property
    def _matrices_s(self) -> float:
        shape = self.shape
        weights = shape.dense_matmul_parameters
        weights += shape.active_expert_parameters / self.hardware.fit.grouped
        flops = 2.0 * weights * self._layers / self.model.num_layers
        return self._share * flops / self._matrix_rate

    @property
    def _head_s(self) -> float:
        """The output head stays in 16 bits at every precision; each MTP layer uses it too."""
        device, fit = self.hardware.device, self.hardware.fit
        rate = device.peak_flops_per_s["bf16"] * fit.matrix_efficiency["bf16"]
        flops = 2.0 * self.model.embedding_parameters * (1 + self._mtp_layers)
        return self._share * flops / rate

    def _attention(self, factor: float) -> Prices:
        shape = self.shape
        rate = self.hardware.device.peak_flops_per_s["bf16"]
        rate *= self.hardware.fit.attention_efficiency * min(
            shape.head_width / _FULL_HEAD_WIDTH, 1.0
        )
        scale = factor * self._share / rate * self._layers / self.model.num_layers
        return Prices(
            pair_s=scale * shape.pair_flops,
            windowed_pair_s=scale * shape.windowed_pair_flops,
        )

    @property
    def _dense_traffic_s(self) -> float:
        """Activations of attention and dense layers over the memory, forward: a third."""
        model = self.model
        shared = model.experts.num_shared_experts if model.experts else 0
        width = self._layers * (2.0 * model.hidden_size + self.shape.attention_width)
        width += 3.0 * model.dense_intermediate * model.num_dense_layers
        if model.experts is not None:
            width += 3.0 * shared * model.experts.shared_intermediate * self._expert_layers
        passes = self.hardware.fit.dense_passes / (1.0 + _BACKWARD_TRAFFIC)
        return self._share * passes * _ACTIVATION_BYTES * width / self._memory_rate

    @property
    def _expert_traffic_s(self) -> float:
        """Copies of tokens for their experts, permuted, multiplied and brought back."""
        experts = self.model.experts
        if experts is None:
            return 0.0
        width = experts.experts_per_token * (
            2.0 * self.model.hidden_size + 3.0 * experts.intermediate
        )
        passes = self.hardware.fit.expert_passes / (1.0 + _BACKWARD_TRAFFIC)
        share = self._share * self._expert_layers
        return share * passes * _ACTIVATION_BYTES * width / self._memory_rate

    @property
    def _tensor_s(self) -> float:
        ranks = self.ranks
        layers = self._layers / ranks.pipeline / ranks.context
        token_bytes = _ACTIVATION_BYTES * self.model.hidden_size
        one_s = gather_s(self.hardware, token_bytes, ranks.tensor, 1)
        return _TENSOR_COLLECTIVES * layers * one_s

    @property
    def _context_s(self) -> float:
        """Keys and values handed around the context ranks; backward twice as much."""
        ranks, attention = self.ranks, self.model.attention
        if ranks.context == 1:
            return 0.0
        width = float(self.model.hidden_size * 2)
        if isinstance(attention, GroupedQueryAttention):
            width = attention.kv_elements_per_token / ranks.tensor
        received = _ACTIVATION_BYTES * width * ranks.context
        one_s = gather_s(self.hardware, received, ranks.context, ranks.tensor)
        return 2.0 * self._layers / ranks.pipeline / ranks.context * one_s

    @property
    def _exchange_s(self) -> float:
        """Dispatch and combine of one direction."""
        experts = self.model.experts
        if experts is None:
            return 0.0
        one_s = exchange_s_per_token(
            self.hardware,
            _ACTIVATION_BYTES * self.model.hidden_size,
            experts.experts_per_token,
            self.ranks.expert,
        )
        return 2.0 * self._share * self._expert_layers * one_s

    def _gather_s(self, parameter_bytes: float) -> float:
        """Gather or reduction of a stage's parameters among the ranks that hold copies [s]."""
        dense, experts = self.stage_parameters
        ranks = self.ranks
        copies = ranks.data * ranks.context
        return gather_s(self.hardware, parameter_bytes * dense, copies, ranks.tensor) + gather_s(
            self.hardware, parameter_bytes * experts, ranks.expert_data, ranks.expert
        )


def _exposed_s(traffic_s: float, hidden_under_s: float) -> float:
    return max(0.1 * traffic_s, traffic_s - hidden_under_s)
