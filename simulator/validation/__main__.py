"""Errors of the serving rows by model, GPU and precision, as Markdown: ``python -m``."""

import sys

import numpy as np

from simulator.costs.closed_loop import closed_loop_tpot_s
from simulator.validation.serving import serving_setups

_HEADER = (
    "| model | GPU | precision | engine | role | cases | median | 90th percentile | bias |",
    "|---|---|---|---|---|---|---|---|---|",
)


def serving_table() -> str:
    """One row a model, GPU, precision and release of the engine."""
    errors: dict[tuple[str, ...], list[float]] = {}
    for setup in serving_setups():
        relative = closed_loop_tpot_s(setup.costs(), setup.loop) / setup.tpot_s - 1.0
        for version, error in zip(setup.rows["engine_version"], relative, strict=True):
            target = setup.target
            key = (target.model.name, target.profile.name, target.precision, version, setup.role)
            errors.setdefault(key, []).append(float(error))
    rows = [
        f"| {' | '.join(key)} | {len(found)} | {np.median(np.abs(found)):.1%} | "
        f"{np.quantile(np.abs(found), 0.9):.1%} | {np.median(found):+.1%} |"
        for key, found in sorted(errors.items(), key=lambda item: (item[0][-1], item[0]))
    ]
    return "\n".join((*_HEADER, *rows))


if __name__ == "__main__":
    sys.stdout.write(serving_table() + "\n")
