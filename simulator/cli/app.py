"""The command ``rollcast``: its verbs, and how errors leave it.

Whatever a verb needs beyond the standard library is imported inside it, so that ``--help`` answers
at once. Data goes to standard output, everything else to standard error.
"""

import errno
import os
import sys
from typing import Annotated

import typer

from simulator.cli import calibrate, catalog, run, validate
from simulator.errors import RollcastError

BAD_INPUT = 2

app = typer.Typer(
    name="rollcast",
    help="Forecast what an RL post-training run of an LLM costs, and what a change would save.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("validate")(validate.validate)
app.command("models")(catalog.models)
app.command("profiles")(catalog.profiles)
app.command("scenarios")(catalog.scenarios)
app.command("show")(catalog.show)
app.command("schema")(catalog.schema)
app.command("calibrate")(calibrate.calibrate)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"rollcast {version('rollcast')}")
        except PackageNotFoundError:
            typer.echo("rollcast (not installed)")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command; errors end in one line and exit code 2."""
    try:
        app()
    except RollcastError as error:
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(BAD_INPUT)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        # Nothing more can be said to a reader that has gone, or to a disk that is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.ENOSPC:
            typer.echo("error: no space left where the output goes", err=True)
        sys.exit(1)
