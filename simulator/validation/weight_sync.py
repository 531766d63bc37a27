"""Weight syncs, measured and projected with the defaults of ``pipeline.weight_sync``.

Rows stand under ``scenarios/published/weight_sync``, with the rule of the split. ``sigma`` is the
spread of the two frameworks that set the rate of a single sender, the only default of two rows.
"""

import math
from typing import Any

from simulator.costs.trainer_links import TrainerHardware
from simulator.costs.weight_sync import sync_of
from simulator.specs.catalog import find_profile
from simulator.specs.weight_sync import WeightSync
from simulator.validation.cases import Case, published_rows

SOURCE = "weight_sync"
_SIGMA = math.log(24.4 / 8.7) / 2.0


def weight_sync_cases() -> list[Case]:
    """All measured syncs; without the pause where the figure leaves it out."""
    cases = []
    rows: Any = published_rows(SOURCE, "measured.csv").fillna(0.0).to_dict(orient="records")
    for row in rows:
        settings = WeightSync(is_bucketed=row["is_bucketed"] == "yes")
        hardware = TrainerHardware.of(find_profile(row["profile"]))
        sync = sync_of(
            settings,
            hardware,
            row["transfer"],
            model_bytes=row["model_bytes"],
            shard_bytes=row["received_bytes"],
            tensors=int(row["tensors"]),
            gpus=max(int(row["gpus"]), 1),
            link_bytes_per_s=hardware.network.scale_out_bytes_per_s,
        )
        pause_s = 0.0 if row["includes_pause"] == "yes" else sync.pause_s
        cases.append(
            Case(
                source=SOURCE,
                case=f"{row['id']} {row['model']}, {row['framework']}",
                metric="seconds_per_sync",
                published=float(row["seconds"]),
                projected=sync.total_s - pause_s,
                sigma=_SIGMA,
                role=row["role"],
            )
        )
    return cases
