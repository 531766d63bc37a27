"""Pre-training throughput, measured and projected.

Rows stand under ``scenarios/published/megatron``, whose README has the rule of the split, and
``scenarios/published/torchtitan``. ``sigma`` is the error on fitted models left out of the fit.
"""

from simulator.costs.pretraining import tokens_per_s_per_gpu
from simulator.specs.catalog import find_model
from simulator.specs.pretraining import (
    FITTED_MODELS,
    PretrainingRow,
    fitted_training,
    is_comparable,
    megatron_rows,
    other_rows,
    profile_of,
    torchtitan_rows,
)
from simulator.validation.cases import Case, Role


def megatron_cases() -> list[Case]:
    """Rows of Megatron-Bridge that the README counts as software of today."""
    rows: list[tuple[PretrainingRow, Role]] = [
        (row, "fitted" if row.published_model in FITTED_MODELS else "validation")
        for row in megatron_rows()
        if is_comparable(row, find_model(row.model))
    ]
    rows += [(row, "validation") for row in other_rows()]
    return [_case("megatron", row, role) for row, role in rows]


def torchtitan_cases() -> list[Case]:
    """Rows of torchtitan, none of them fitted."""
    return [_case("torchtitan", row, "validation") for row in torchtitan_rows()]


def _case(source: str, row: PretrainingRow, role: Role) -> Case:
    model, fit = find_model(row.model), fitted_training()[profile_of(row.gpu)]
    return Case(
        source=source,
        case=row.describe(),
        metric="tokens_per_s_per_gpu",
        published=row.tokens_per_s_per_gpu,
        projected=tokens_per_s_per_gpu(row, model, fit),
        sigma=fit.error.moe if model.is_moe else fit.error.dense,
        role=role,
    )
