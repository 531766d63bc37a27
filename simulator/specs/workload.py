"""What is generated in one step: how many prompts, how many answers each, how long they are."""

from typing import Self

from pydantic import Field, model_validator

from simulator.base import FrozenModel
from simulator.policies.lengths import GroupCorrelation, LengthLaw, TruncatedLength

MAX_ROLLOUTS_PER_STEP = 10_000_000
_MOST_MEAN_OVER_LIMIT = 100
"""A larger ratio is a mistaken unit rather than a workload [1]."""


class Workload(FrozenModel):
    """Prompts of one step and the laws of their lengths."""

    prompts_per_step: int = Field(gt=0, le=MAX_ROLLOUTS_PER_STEP)
    """Prompts drawn for one policy update cycle [1]."""
    samples_per_prompt: int = Field(gt=0, le=65_536)
    """Answers generated for each prompt: the group size [1]."""
    prompt_length: LengthLaw
    """Length of a prompt [tokens]."""
    response_length: LengthLaw
    """Length that the model would write without a limit [tokens]."""
    within_group_correlation: float = Field(default=0.0, ge=0, le=1)
    """Correlation of the (normal scores of the) lengths of two answers to one prompt [1]."""
    max_prompt_tokens: int = Field(default=8_192, gt=0, le=10_000_000)
    """Prompts are cut here [tokens]."""
    max_response_tokens: int = Field(gt=0, le=10_000_000)
    """Answers are cut here [tokens]."""

    @model_validator(mode="after")
    def _means_suit_the_limits(self) -> Self:
        for length, limit in (
            ("prompt_length", "max_prompt_tokens"),
            ("response_length", "max_response_tokens"),
        ):
            mean, most = getattr(self, length).mean_tokens(), getattr(self, limit)
            if mean > _MOST_MEAN_OVER_LIMIT * most:
                raise ValueError(
                    f"{limit}: the mean of {length} ({mean:g}) is over "
                    f"{_MOST_MEAN_OVER_LIMIT} times the limit ({most}); the unit is tokens"
                )
        return self

    @property
    def rollouts_per_step(self) -> int:
        """Answers generated in one step [1]."""
        return self.prompts_per_step * self.samples_per_prompt

    @property
    def prompts(self) -> TruncatedLength:
        """Prompt lengths after the limit."""
        return TruncatedLength(law=self.prompt_length, limit_tokens=self.max_prompt_tokens)

    @property
    def responses(self) -> TruncatedLength:
        """Response lengths after the limit."""
        return TruncatedLength(law=self.response_length, limit_tokens=self.max_response_tokens)

    @property
    def group(self) -> GroupCorrelation:
        """How answers to one prompt resemble one another."""
        return GroupCorrelation(within_group=self.within_group_correlation)
