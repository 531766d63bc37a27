"""``rollcast run``: one scenario, with its baseline if it names one."""

import sys
from pathlib import Path
from typing import Annotated

import typer

Reference = Annotated[str, typer.Argument(help="A name from `rollcast scenarios`, or a YAML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Override dotted.path=value; may be repeated.", metavar="PATH=VALUE"
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", help="Independent repetitions.")]
Steps = Annotated[int | None, typer.Option("--steps", help="RL steps to measure.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
OutputFolder = Annotated[
    Path | None, typer.Option("--out", help="Folder for tables, plots and the resolved scenario.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no warnings.")]


def run(
    scenario: Reference,
    overrides: Overrides = None,
    seeds: Seeds = None,
    steps: Steps = None,
    as_json: AsJson = False,
    out: OutputFolder = None,
    quiet: Quiet = False,
) -> None:
    """Project a scenario: seconds a step, where they go, and what it saves.

    Example: rollcast run qwen3-235b-sync-512 --set speculation.draft_length=5 --seeds 3
    """
    import json

    from simulator.analysis.projection import project
    from simulator.cli.progress import replication_progress
    from simulator.cli.projection_table import print_projection
    from simulator.specs.load import load_scenario

    shortcuts = [
        f"{name}={value}"
        for name, value in (("seeds", seeds), ("steps", steps))
        if value is not None
    ]
    loaded = load_scenario(scenario, [*(overrides or []), *shortcuts])
    if out is not None:
        from simulator.analysis.outputs import prepare_folder

        prepare_folder(out)
    with replication_progress(sys.stderr, is_wanted=not quiet) as progress:
        projection = project(loaded, progress=progress)
    if out is not None:
        from simulator.analysis.outputs import write_outputs

        write_outputs(projection, out)
    if as_json:
        typer.echo(json.dumps(projection.to_json(), indent=2, allow_nan=False))
    else:
        print_projection(projection)
    if not quiet:
        for warning in projection.warnings:
            typer.echo(f"warning: {warning}", err=True)
