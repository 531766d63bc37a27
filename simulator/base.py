"""The model that every user-facing declaration derives from.

Frozen, so that a spec can be shared and hashed; closed, so that a misspelt key is an error;
and without NaN or infinity, so that arithmetic further down needs no guards.
"""

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, model_validator


class FrozenModel(BaseModel):
    """An immutable declaration whose unknown keys and non-finite numbers are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _a_truth_value_is_no_number(cls, data: Any) -> Any:
        """Python counts ``True`` as 1; a document that says so means something else."""
        if isinstance(data, dict):
            for name, value in data.items():
                field = cls.model_fields.get(name)
                if isinstance(value, bool) and field and not _takes_bool(field.annotation):
                    raise ValueError(f"{name}: {str(value).lower()} is not allowed here")
        return data


def _takes_bool(annotation: Any) -> bool:
    return annotation in (bool, Any) or any(_takes_bool(part) for part in get_args(annotation))
