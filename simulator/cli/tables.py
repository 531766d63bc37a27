"""Tables on a terminal: wide enough for their content, in colour only where somebody looks."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 160
"""Columns of a table that goes into a file or a pipe [1]."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and how its cells stand."""

    title: str
    is_number: bool = False


def console(stream: TextIO) -> Console:
    """A console that leaves files and pipes free of control characters."""
    is_terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=is_terminal,
        width=None if is_terminal else _PLAIN_WIDTH,
        no_color=not is_terminal or "NO_COLOR" in os.environ,
        highlight=False,
        markup=False,
        soft_wrap=False,
    )


def print_table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output."""
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column.title, justify="right" if column.is_number else "left")
    for row in rows:
        table.add_row(*row)
    console(sys.stdout).print(table)
