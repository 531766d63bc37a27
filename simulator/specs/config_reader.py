"""Typed look-ups in a foreign JSON object, each refusing what it cannot take in one sentence.

A Hugging Face ``config.json`` has no schema: keys have synonyms, may be null, may sit in a nested
object. A :class:`ConfigReader` answers with a number, a flag or a list, or with a ``ScenarioError``
that names the model, the key and what is allowed.
"""

from collections.abc import Mapping
from typing import Any

from simulator.errors import ScenarioError

_LARGEST = 10**9
"""Far above any width; keeps a slip of the keyboard from becoming a huge number."""


class ConfigReader:
    """Looks keys up in the objects of one config, the innermost first."""

    def __init__(self, name: str, *levels: Mapping[str, Any]) -> None:
        self._name = name
        self._levels = levels

    def refusal(self, problem: str) -> ScenarioError:
        """The error that says ``problem`` of this model."""
        return ScenarioError(f"model {self._name}: {problem}")

    def value(self, key: str) -> Any:
        """What the innermost object says under ``key``; null and absent are both ``None``."""
        for level in self._levels:
            if level.get(key) is not None:
                return level[key]
        return None

    def has(self, key: str) -> bool:
        """Whether ``key`` says anything but null."""
        return self.value(key) is not None

    def keys(self) -> set[str]:
        """Keys of the innermost object."""
        return {str(key) for key in self._levels[0]}

    def size(self, *keys: str) -> int:
        """A whole number above 0 under one of these synonyms."""
        number = self.optional_size(*keys)
        if number is None:
            raise self.refusal(f"{' or '.join(keys)} is missing; it must be a whole number > 0")
        return number

    def optional_size(self, *keys: str) -> int | None:
        """The same, or ``None`` where no synonym says anything."""
        return self._agreed(keys, smallest=1)

    def count(self, *keys: str, default: int = 0) -> int:
        """A whole number of 0 or more, or the default."""
        number = self._agreed(keys, smallest=0)
        return default if number is None else number

    def flag(self, key: str, default: bool) -> bool:
        """True or false, or the default."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refusal(f"{key} must be true or false, got {_shown(value)}")
        return value

    def text(self, key: str) -> str:
        """A string, or an empty one where the key is absent."""
        value = self.value(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.refusal(f"{key} must be a string, got {_shown(value)}")
        return value

    def items(self, key: str, num_items: int | None = None) -> list[Any] | None:
        """A list, of a given length if one is given, or ``None`` where the key is absent."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.refusal(f"{key} must be a list, got {_shown(value)}")
        if num_items is not None and len(value) != num_items:
            raise self.refusal(f"{key} has {len(value)} entries, but there are {num_items} layers")
        return list(value)

    def mapping(self, key: str) -> Mapping[str, Any] | None:
        """A nested object, or ``None`` where the key is absent."""
        value = self.value(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.refusal(f"{key} must be an object, got {_shown(value)}")
        return value

    def nested(self, key: str) -> "ConfigReader | None":
        """A reader of a nested object alone, or ``None`` where the key is absent or empty."""
        value = self.mapping(key)
        return ConfigReader(f"{self._name}: {key}", value) if value else None

    def whole_number(self, key: str, value: Any, smallest: int) -> int:
        """``value``, if it is a whole number of at least ``smallest``."""
        # bool is a subclass of int, but "num_experts": true is a mistake.
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not smallest <= value <= _LARGEST:
            allowed = f"a whole number from {smallest} to {_LARGEST}"
            raise self.refusal(f"{key} must be {allowed}, got {_shown(value)}")
        return int(value)

    def _agreed(self, keys: tuple[str, ...], smallest: int) -> int | None:
        found = {
            key: self.whole_number(key, self.value(key), smallest) for key in keys if self.has(key)
        }
        if len(set(found.values())) > 1:
            told = " and ".join(f"{key} {number}" for key, number in found.items())
            raise self.refusal(f"{told} mean the same thing but differ; keep the right one")
        return next(iter(found.values()), None)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
