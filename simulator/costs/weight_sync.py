"""Seconds of handing new weights from the trainer's layout to the engine's.

``T = pause + max(bytes / link, bytes / load) + tensors x call`` where whole tensors move (gather,
broadcast), and ``T = pause + shard / link`` where each GPU pulls its own. Transfer and loading
overlap bucket by bucket; calls do not.
"""

from dataclasses import dataclass
from typing import Literal

from simulator.costs.layers import Target
from simulator.costs.memory import weight_bytes_per_gpu
from simulator.costs.trainer_links import TrainerHardware, gather_s
from simulator.specs.model import LatentAttention, ModelSpec
from simulator.specs.pipeline import Pipeline
from simulator.specs.weight_sync import WeightSync

Transfer = Literal["gather", "broadcast", "pull"]


@dataclass(frozen=True, slots=True)
class Sync:
    """One hand-over of weights [s]."""

    pause_s: float
    """Pause, barrier, sleep and wake-up."""
    transfer_s: float
    """Bytes over links and into the engine, whichever is slower."""
    call_s: float
    """Calls of single tensors."""

    @property
    def total_s(self) -> float:
        """From the last optimizer step to an engine with new weights."""
        return self.pause_s + self.transfer_s + self.call_s


def weight_sync(
    target: Target, pipeline: Pipeline, software: Literal["measured", "ideal"] = "measured"
) -> Sync:
    """Price the sync of a scenario.

    Parameters
    ----------
    software
        ``ideal`` leaves out what software adds: each GPU receives its own shard at the link's rate,
        with the pause that the scenario asks for.
    """
    settings = pipeline.weight_sync
    network = target.profile.network
    is_near = pipeline.placement == "colocated" and target.parallelism.gpus <= network.scale_up_gpus
    link = network.scale_up_bytes_per_s if is_near else network.scale_out_bytes_per_s
    shard = weight_bytes_per_gpu(target)
    if settings.bytes_per_s is not None:
        return Sync(settings.pause_s, shard / settings.bytes_per_s, 0.0)
    if software == "ideal":
        return Sync(settings.pause_s, shard / link, 0.0)
    transfer: Transfer
    if settings.transfer == "auto":
        transfer = "gather" if pipeline.placement == "colocated" else "broadcast"
    else:
        transfer = settings.transfer
    return sync_of(
        settings,
        TrainerHardware.of(target.profile),
        transfer,
        model_bytes=target.model.weight_bytes(target.precision),
        shard_bytes=shard,
        tensors=tensor_count(target.model),
        gpus=target.parallelism.gpus,
        link_bytes_per_s=link,
    )


def sync_of(
    settings: WeightSync,
    hardware: TrainerHardware,
    transfer: Transfer,
    *,
    model_bytes: float,
    shard_bytes: float,
    tensors: int,
    gpus: int,
    link_bytes_per_s: float,
) -> Sync:
    """The equation, with its quantities spelt out.

    Parameters
    ----------
    model_bytes, shard_bytes
        Weights of the model in the engine's precision, and what one engine GPU keeps of them
        [bytes].
    gpus
        GPUs that gather whole tensors together [1].
    link_bytes_per_s
        Link that a pull crosses [bytes/s].
    """
    calls_s = 0.0 if settings.is_bucketed else tensors * settings.tensor_s
    load_s = model_bytes / settings.load_bytes_per_s
    match transfer:
        case "gather":
            moved_s = max(gather_s(hardware, model_bytes, gpus, 1), load_s)
        case "broadcast":
            moved_s = model_bytes / settings.sender_bytes_per_s
        case "pull":
            moved_s = shard_bytes / (settings.pull_share * link_bytes_per_s)
    return Sync(settings.pause_s, moved_s, calls_s)


def tensor_count(model: ModelSpec) -> int:
    """Weight tensors of a checkpoint, each expert's three matrices apart [1].

    >>> from simulator.specs.catalog import find_model
    >>> tensor_count(find_model("Qwen3-30B-A3B"))
    18867
    """
    attention = model.attention
    vectors = 2
    if isinstance(attention, LatentAttention):
        matrices = 7 if attention.q_lora_rank else 5
    else:
        matrices = 4 + (3 if attention.has_bias else 0)
        vectors += 2 if attention.has_qk_norm else 0
    count = model.num_layers * (matrices + vectors) + 3 * model.num_dense_layers
    if model.experts is not None:
        shared = 3 if model.experts.num_shared_experts else 0
        count += model.num_expert_layers * (3 * model.experts.num_experts + 1 + shared)
    return count + (2 if model.ties_embeddings else 3)
