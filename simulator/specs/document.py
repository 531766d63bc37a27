"""YAML 1.2 files as plain data that remember their lines, and nothing that a file can abuse.

Only mappings, lists and scalars come out: no tag constructs an object, a repeated key is an error,
and size, depth and the number of values are bounded before anything is built, aliases included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from simulator.errors import ScenarioError

Path_ = tuple[str | int, ...]
"""Keys and positions that lead to one value of a document."""

MAX_FILE_BYTES = 16 * 2**20
MAX_DEPTH = 32
MAX_VALUES = 250_000

_SCALAR_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_TEXT_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "timestamp", "merge", "value")
)


class MalformedError(Exception):
    """What is wrong with a YAML text, and in which line of it."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a YAML text, and the line of every key in it."""

    value: JsonValue
    lines: Mapping[Path_, int] = field(repr=False)

    def line(self, path: Path_) -> int:
        """Line of a path, or of the nearest part of the document that contains it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1


def read_bounded(path: Path, label: str) -> str:
    """A UTF-8 file as text.

    Raises
    ------
    ScenarioError
        If it is missing, a folder, unreadable, not UTF-8, or larger than ``MAX_FILE_BYTES``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except IsADirectoryError as error:
        raise ScenarioError(f"{label}: is a folder, not a file") from error
    except FileNotFoundError as error:
        raise ScenarioError(f"{label}: no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{label}: cannot be read: {reason}") from error
    if len(content) > MAX_FILE_BYTES:
        raise ScenarioError(f"{label}: larger than {MAX_FILE_BYTES // 2**20} MiB, the most allowed")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{label}:{line}: not a text file in UTF-8") from error


def read_mapping(path: Path, label: str) -> tuple[dict[str, JsonValue], Document]:
    """A YAML file whose outermost value has to be a mapping, with its lines.

    Raises
    ------
    ScenarioError
        If the file cannot be read, is not YAML, or holds something else.
    """
    try:
        document = parse_yaml(read_bounded(path, label))
    except MalformedError as error:
        raise ScenarioError(f"{label}:{error.line}: {error.problem}") from error
    if document.value is None:
        raise ScenarioError(f"{label}:1: the file is empty; a mapping of keys was expected")
    if not isinstance(document.value, dict):
        got = "a list" if isinstance(document.value, list) else "a single value"
        raise ScenarioError(f"{label}:1: a mapping of keys was expected (got {got})")
    return document.value, document


def parse_yaml(text: str) -> Document:
    """Plain data of one YAML 1.2 document.

    Raises
    ------
    MalformedError
        If the text is not YAML, or not YAML that may stand in a scenario.
    """
    # A %YAML directive could bring back YAML 1.1, where `no` is false and 010 is 8.
    if text.startswith("%") or "\n%" in text:
        line = text[: text.find("%")].count("\n") + 1
        raise MalformedError("YAML directives (lines that begin with %) are not allowed", line)
    loader = YAML(typ="safe", pure=True)
    loader.Composer = _BoundedComposer
    try:
        root = loader.compose(text)
    except MalformedError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context
        raise MalformedError(f"not YAML: {reason}", mark.line + 1 if mark else 1) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise MalformedError("not a text file: it holds control characters", line) from error
    # Beside its own errors, the library lets a few of Python's through on hostile input.
    except (YAMLError, Exception) as error:
        raise MalformedError(f"not YAML: {error}", 1) from error
    if root is None:
        return Document(None, {})
    builder = _Builder(loader)
    return Document(builder.value(root, (), 0), builder.lines)


class _BoundedComposer(Composer):
    """Stops at too many or too deeply nested values, while they are being read."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.warn_double_anchors = False
        self._level = 0
        self._values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        line = self.parser.peek_event().start_mark.line + 1
        self._values += 1
        self._level += 1
        _refuse_excess(self._values, self._level - 1, line)
        node = super().compose_node(parent, index)
        self._level -= 1
        return node


class _Builder:
    """Turns nodes into plain data; every use of an alias counts as values of its own."""

    def __init__(self, loader: YAML) -> None:
        self.lines: dict[Path_, int] = {}
        self._constructor = loader.constructor
        self._values = 0

    def value(self, node: Any, path: Path_, depth: int) -> JsonValue:
        """Plain data of a node, whose lines are noted under ``path``."""
        self._values += 1
        line = node.start_mark.line + 1
        _refuse_excess(self._values, depth, line)
        if isinstance(node, ScalarNode):
            return self._scalar(node, line)
        if isinstance(node, MappingNode) and _tag(node) == "tag:yaml.org,2002:map":
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode) and _tag(node) == "tag:yaml.org,2002:seq":
            return [
                self.value(item, (*path, position), depth + 1)
                for position, item in enumerate(node.value)
            ]
        raise _foreign_tag(node, line)

    def _mapping(self, node: Any, path: Path_, depth: int) -> dict[str, JsonValue]:
        mapping: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._scalar(key_node, line) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                raise MalformedError("a key of a mapping must be text", line)
            if key in mapping:
                first = self.lines[*path, key]
                raise MalformedError(
                    f"duplicate key {key}; it already stands in line {first}", line
                )
            self.lines[*path, key] = line
            mapping[key] = self.value(value_node, (*path, key), depth + 1)
        return mapping

    def _scalar(self, node: Any, line: int) -> bool | int | float | str | None:
        if _tag(node) in _TEXT_TAGS:
            text = str(node.value)
            if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise MalformedError("a text holds half a character (a lone surrogate)", line)
            return text
        if _tag(node) not in _SCALAR_TAGS:
            raise _foreign_tag(node, line)
        try:
            value = self._constructor.construct_object(node)
        except (YAMLError, ValueError, KeyError, TypeError, IndexError) as error:
            kind = _tag(node).rpartition(":")[2]
            raise MalformedError(f"{str(node.value)[:40]!r} is not a valid {kind}", line) from error
        if isinstance(value, float):
            return float(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        return bool(value) if value is not None else None


def _tag(node: Any) -> str:
    return str(node.tag)


def _foreign_tag(node: Any, line: int) -> MalformedError:
    return MalformedError(f"the tag {_tag(node)} is not allowed; write plain values", line)


def _refuse_excess(values: int, depth: int, line: int) -> None:
    if values > MAX_VALUES:
        raise MalformedError(
            f"more than {MAX_VALUES:,} values, counting every use of an alias", line
        )
    if depth > MAX_DEPTH:
        raise MalformedError(f"nested more than {MAX_DEPTH} levels deep", line)
