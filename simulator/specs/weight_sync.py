"""What handing new weights from the trainer to the engine costs."""

from typing import Literal

from pydantic import Field

from simulator.base import FrozenModel


class WeightSync(FrozenModel):
    """How weights travel. Defaults are measured: ``scenarios/published/weight_sync``."""

    transfer: Literal["auto", "gather", "broadcast", "pull"] = "auto"
    """``gather``: trainer ranks gather whole tensors and hand them to the engine on the same GPU;
    ``broadcast``: one sender passes whole tensors to all engine GPUs; ``pull``: each engine GPU
    fetches its own shard. ``auto``: gather if colocated, else broadcast."""
    pause_s: float = Field(default=1.5, ge=0)
    """Pause, barrier, sleep and wake-up of the engine for one sync (assumed; 5.7 measured by
    prime-rl on 96 GPUs) [s]."""
    is_bucketed: bool = True
    """Whether tensors travel in flattened buckets instead of one call each."""
    tensor_s: float = Field(default=5e-4, ge=0)
    """Call, handle and bookkeeping of one tensor without buckets (W04) [s]."""
    sender_bytes_per_s: float = Field(default=1.46e10, gt=0)
    """Rate of a single sender, its gather and staging included (W01, W05) [bytes/s]."""
    load_bytes_per_s: float = Field(default=2.04e10, gt=0)
    """Rate at which an engine takes whole tensors apart and keeps its share (W03) [bytes/s]."""
    pull_share: float = Field(default=0.58, gt=0, le=1)
    """Share of a link's rate that a sharded pull sees (W07: 29 of 50 GB/s) [1]."""
    bytes_per_s: float | None = Field(default=None, gt=0)
    """Rate at which one GPU receives its shard, which replaces all of these [bytes/s]."""
