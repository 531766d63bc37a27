"""Validation errors as one sentence: which key, what is allowed, what was given.

Pydantic knows where a value stands and what is wrong with it; the unit and the allowed keys come
from the models themselves.
"""

import re
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

KeyPath = tuple[str | int, ...]

_UNIT = re.compile(r"\[([^\]]+)\]\.?$")
_LONGEST_VALUE = 60
_MOST_KEYS = 12
_NUMBER_TYPES = frozenset({"int_parsing", "int_type", "float_parsing", "float_type"})
_MODEL_MESSAGE = re.compile(r"^([a-z_][a-z_0-9.]*): ", re.DOTALL)


def first_problem(error: ValidationError, model: type[BaseModel]) -> tuple[KeyPath, str]:
    """Path of the first problem, and a sentence about it that begins with the dotted key.

    Further problems are counted, not told.
    """
    details = error.errors(include_url=False)
    chosen = next((item for item in details if item["type"] == "extra_forbidden"), details[0])
    path = _without_tags(chosen["loc"], model)
    same = [item for item in details if _without_tags(item["loc"], model) == path]
    sentence = _choice(same, path) or _sentence(chosen, path, model)
    others = len({_without_tags(item["loc"], model) for item in details}) - 1
    if others:
        sentence += f" (and {others} more)"
    # A check of several keys stands at their parent and names the key that it is about.
    named = _MODEL_MESSAGE.match(sentence) if chosen["type"] == "value_error" else None
    return (tuple(named[1].split(".")) if named else path), sentence


def dotted(path: KeyPath) -> str:
    """``("a", "b", 2)`` as ``a.b[2]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def models_at(model: type[BaseModel], path: KeyPath) -> list[type[BaseModel]]:
    """Models that may stand at a path below ``model``: several where there is a choice."""
    found = [model]
    for part in path:
        following: list[type[BaseModel]] = []
        for candidate in found:
            field = candidate.model_fields.get(str(part))
            if field is not None:
                following += _models_in(field.annotation)
        found = following
    return found


def allowed_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Keys that may stand at a path below ``model``."""
    return sorted({key for found in models_at(model, path) for key in found.model_fields})


def unknown_key(model: type[BaseModel], path: KeyPath) -> str:
    """What to say about a key that does not exist: the nearest one, and those allowed."""
    keys = allowed_keys(model, path[:-1])
    if path[-1] in keys:
        return "not a key of the kind that stands there; change kind as well"
    if not keys:
        return "no key is allowed here"
    near = get_close_matches(str(path[-1]), keys, n=1, cutoff=0.6)
    hint = f"did you mean {dotted((*path[:-1], near[0]))}? " if near else ""
    shown = ", ".join(keys[:_MOST_KEYS]) + (", ..." if len(keys) > _MOST_KEYS else "")
    return f"unknown key; {hint}allowed here are {shown}"


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _models_in(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [model for option in get_args(annotation) for model in _models_in(option)]
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return [annotation] if is_model else []


def _without_tags(loc: KeyPath, model: type[BaseModel]) -> KeyPath:
    """A location without the names of union members, which stand in no document.

    The last part of an unknown key is kept; it is not a field, but the user wrote it.
    """
    kept: KeyPath = ()
    for index, part in enumerate(loc):
        above = models_at(model, kept)
        known = {key for found in above for key in found.model_fields}
        is_last_of_a_model = index == len(loc) - 1 and bool(above)
        if isinstance(part, int) or part in known or is_last_of_a_model:
            kept = (*kept, part)
    return kept


def _choice(items: list[ErrorDetails], path: KeyPath) -> str:
    """What to say where a word or a number is allowed and neither was given."""
    literals = [item for item in items if item["type"] == "literal_error"]
    numbers = [item for item in items if item["type"] != "literal_error"]
    if not literals or not numbers:
        return ""
    number = numbers[0]
    what = "a whole number"
    if number["type"] == "greater_than":
        what = f"a whole number above {number['ctx']['gt']}"
    word = literals[0].get("ctx", {}).get("expected", "a word")
    return f"{dotted(path)}: must be {word} or {what} (got {_shown(number['input'])})"


def _unit(model: type[BaseModel], path: KeyPath) -> str:
    for parent in models_at(model, path[:-1]) if path else []:
        field = parent.model_fields.get(str(path[-1]))
        match = _UNIT.search((field.description or "").strip()) if field else None
        if match and match[1] != "1":
            return match[1]
    return ""


def _sentence(item: ErrorDetails, path: KeyPath, model: type[BaseModel]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    key = dotted(path)
    if kind == "value_error":
        message = str(context.get("error", item["msg"]))
        return _with_key(key, message, models_at(model, path))
    if kind == "extra_forbidden":
        return f"{key}: {unknown_key(model, path)}"
    unit = _unit(model, path)
    in_unit = f" [{unit}]" if unit else ""
    if kind == "missing":
        return f"{key}: is missing{f'; wanted in {unit}' if unit else ''}"
    given = f" (got {_shown(item['input'])})"
    if kind in _NUMBER_TYPES:
        noun = "a whole number" if kind.startswith("int") else "a number"
        plain = f"{noun} of {unit}" if unit else noun
        return f"{key}: must be {plain}, without a suffix{given}"
    if kind == "int_from_float":
        return f"{key}: must be a whole number{f' of {unit}' if unit else ''}{given}"
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        kinds = context.get("expected_tags") or ", ".join(
            f"'{found.model_fields['kind'].default}'"
            for found in models_at(model, path)
            if "kind" in found.model_fields
        )
        return f"{key}.kind: must be one of {kinds}{given if kind.endswith('invalid') else ''}"
    if kind in {"model_type", "model_attributes_type", "dict_type"}:
        return f"{key}: must be a mapping of keys{given}"
    message = re.sub(r"^\w+ should ", "", item["msg"])
    return f"{key}: must {message}{in_unit}{given}"


def _with_key(key: str, message: str, models: list[type[BaseModel]]) -> str:
    match = _MODEL_MESSAGE.match(message)
    if match and any(match[1].split(".")[0] in found.model_fields for found in models):
        return f"{key}.{message}" if key else message
    return f"{key}: {message}" if key else message


def _shown(value: Any) -> str:
    text = " ".join(str(value).split()) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
