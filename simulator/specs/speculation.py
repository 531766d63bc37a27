"""Speculative decoding as a user declares it: drafter, draft length, acceptance."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.policies.acceptance import (
    BetaAcceptance,
    EmpiricalAcceptance,
    MeanAcceptance,
    PositionalAcceptance,
    RequestAcceptance,
)
from simulator.specs.engine import AutoRanks
from simulator.specs.hardware import Precision

SpeculationMethod = Literal["none", "eagle3", "mtp", "draft_model", "ngram"]


class Drafter(FrozenModel):
    """Shape of the drafting model where the method leaves it open."""

    model: str | None = None
    """Draft model of method ``draft_model``: a name under workloads/models or a config.json."""
    precision: Precision | None = None
    """Precision of the drafter's weights; default: the engine's."""
    tensor_parallel: AutoRanks = "auto"
    """Ways that the drafter is split: 1 keeps it whole on each GPU, ``auto`` splits it like the
    target, as vLLM does when it is not told [ranks]."""
    vocab_size: int = Field(default=32_000, gt=0)
    """Output vocabulary of an EAGLE-3 head [1]."""
    intermediate: int | None = Field(default=None, gt=0)
    """Feed-forward width of an EAGLE-3 head; default: the target's dense width [1]."""


class Speculation(FrozenModel):
    """One speculation set-up. Acceptance is told in exactly one of three ways."""

    method: SpeculationMethod = "none"
    """Who proposes tokens; ``none`` is plain decoding."""
    draft_length: int = Field(default=3, ge=0, le=64)
    """Tokens proposed a round; 0 is plain decoding [tokens]."""
    acceptance_length: float | None = Field(default=None, ge=1)
    """Mean tokens a verify round emits, bonus included [tokens]."""
    acceptance_rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] | None = None
    """P(position i is accepted) for each drafted position [1]."""
    acceptance: BetaAcceptance | EmpiricalAcceptance | None = Field(
        default=None, discriminator="kind"
    )
    """Distribution of the acceptance length over requests."""
    drafter: Drafter = Drafter()
    """Shape of the drafting model."""

    @property
    def is_active(self) -> bool:
        """Whether any token is ever proposed."""
        return self.method != "none" and self.draft_length > 0

    @property
    def active_draft_length(self) -> int:
        """Tokens proposed a round, 0 for plain decoding [tokens]."""
        return self.draft_length if self.is_active else 0

    @property
    def law(self) -> RequestAcceptance:
        """The acceptance law that was given, whichever way."""
        if self.acceptance_length is not None:
            return MeanAcceptance(length=self.acceptance_length)
        if self.acceptance_rates is not None:
            return PositionalAcceptance(rates=self.acceptance_rates)
        return self.acceptance or MeanAcceptance(length=1.0)

    @model_validator(mode="after")
    def _acceptance_is_told_once_and_can_be_reached(self) -> Self:
        told = [
            name
            for name in ("acceptance_length", "acceptance_rates", "acceptance")
            if getattr(self, name) is not None
        ]
        if len(told) > 1:
            raise ValueError(
                f"acceptance is told {len(told)} ways ({', '.join(told)}); keep one of them"
            )
        if not self.is_active:
            return self
        if not told:
            raise ValueError(
                "acceptance is missing: give acceptance_length, acceptance_rates or acceptance"
            )
        if self.method == "draft_model" and self.drafter.model is None:
            raise ValueError("drafter.model: method draft_model needs the name of a draft model")
        self.law.check(self.draft_length)
        return self
