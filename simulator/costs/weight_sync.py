"""Seconds of handing new weights from the trainer to the engine.

Colocated, every GPU gathers the weights of its engine shard from its peers over NVLink (inside a
domain) or the network; disaggregated, they always cross the network. A fixed pause (barrier, sleep,
wake-up, cache reset) comes on top and usually decides: see ``pipeline.weight_sync``.
"""

from simulator.costs.layers import Target
from simulator.costs.memory import GenerationMemory
from simulator.specs.pipeline import Pipeline

_LINK_EFFICIENCY = 0.7
"""Share of a link's rate that resharding sees (assumed) [1]."""


def weight_sync_s(target: Target, memory: GenerationMemory, pipeline: Pipeline) -> float:
    """Seconds from the last optimizer step to an engine with new weights [s].

    Each GPU receives its own shard of the target; shards arrive in parallel.
    """
    network = target.profile.network
    is_local = pipeline.placement == "colocated" and target.parallelism.gpus <= (
        network.scale_up_gpus
    )
    link = network.scale_up_bytes_per_s if is_local else network.scale_out_bytes_per_s
    rate = pipeline.weight_sync.bytes_per_s or _LINK_EFFICIENCY * link
    return pipeline.weight_sync.pause_s + memory.weight_bytes / rate
