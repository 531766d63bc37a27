"""The model that every user-facing declaration derives from.

Frozen, so that a spec can be shared and hashed; closed, so that a misspelt key is an error;
and without NaN or infinity, so that arithmetic further down needs no guards.
"""

from pydantic import BaseModel, ConfigDict


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
