"""Pre-training throughput, measured and projected: every row of ``scenarios/published/megatron``.

A row is fitted by the rule in the README there. A projection uses the shipped profile of the GPU, or
the fit it would be made of. ``sigma`` is the error on fitted models that were left out of the fit.
"""

from simulator.costs.pretraining import tokens_per_s_per_gpu
from simulator.specs.catalog import find_model
from simulator.specs.pretraining import (
    FITTED_MODELS,
    OLDEST_FITTED_RELEASE,
    PretrainingRow,
    fitted_training,
    megatron_rows,
    other_rows,
    profile_of,
    release_number,
)
from simulator.validation.cases import Case, Role

SOURCE = "megatron"


def training_cases() -> list[Case]:
    """All rows but those that the publisher annotates as exceptional."""
    rows = [("", row, _role(row)) for row in megatron_rows() if not row.is_annotated]
    others: list[tuple[str, PretrainingRow, Role]] = [
        (f"{name} ", row, "validation") for name, row in other_rows()
    ]
    return [_case(name, row, role) for name, row, role in rows + others]


def _role(row: PretrainingRow) -> Role:
    is_old = (
        find_model(row.model).is_moe and release_number(row.release) < OLDEST_FITTED_RELEASE
    )
    return "fitted" if row.published_model in FITTED_MODELS and not is_old else "validation"


def _case(name: str, row: PretrainingRow, role: Role) -> Case:
    model, fit = find_model(row.model), fitted_training()[profile_of(row.gpu)]
    return Case(
        source=SOURCE,
        case=f"{name}{row.describe()}",
        metric="tokens_per_s_per_gpu",
        published=row.tokens_per_s_per_gpu,
        projected=tokens_per_s_per_gpu(row, model, fit),
        sigma=fit.error.moe if model.is_moe else fit.error.dense,
        role=role,
    )
