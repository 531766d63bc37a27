"""A progress bar for work that takes long enough to be looked at."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from simulator.cli.tables import console

_PATIENCE_S = 2.0


@contextmanager
def replication_progress(
    stream: TextIO, *, is_wanted: bool
) -> Iterator[Callable[[int, int], None] | None]:
    """A callback that draws a bar on ``stream`` once two seconds have passed.

    Nothing is drawn, and ``None`` is given, where the stream is no terminal.
    """
    if not is_wanted or not stream.isatty():
        yield None
        return
    from rich.progress import Progress

    began_s = time.monotonic()
    with Progress(console=console(stream), transient=True, disable=False) as bar:
        task = bar.add_task("simulating", total=None, visible=False)

        def show(done: int, total: int) -> None:
            is_late = time.monotonic() - began_s > _PATIENCE_S
            bar.update(task, completed=done, total=total, visible=is_late)

        yield show
