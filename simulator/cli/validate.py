"""``rollcast validate``: published measurements beside what is projected for them."""

from pathlib import Path
from typing import Annotated

import typer

Sources = Annotated[
    list[str] | None,
    typer.Argument(help="Folders under scenarios/published; default: all that are compared."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a list of cases instead of a table.")]
PlotFolder = Annotated[
    Path | None, typer.Option("--plots", help="Folder for a picture a source.", metavar="DIR")
]


def validate(sources: Sources = None, as_json: AsJson = False, plots: PlotFolder = None) -> None:
    """Compare projections with published measurements.

    Cases that coefficients were fitted on are `fitted`, all others `validation`; the README beside
    the rows of each source gives the rule.

    Example: rollcast validate serving --plots out/validation
    """
    import json

    from simulator.validation import validation_cases

    if plots is not None:
        from simulator.analysis.outputs import prepare_folder

        prepare_folder(plots, "--plots")
    cases = validation_cases(sources or ())
    if plots is not None:
        from simulator.validation.plots import plot_sources

        for path in plot_sources(cases, plots):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(json.dumps([case.to_json() for case in cases], indent=2, allow_nan=False))
        return
    from simulator.cli.tables import Column, print_table
    from simulator.validation.summary import summaries

    print_table(
        "Projected against published",
        (
            Column("source"),
            Column("metric"),
            Column("role"),
            Column("cases", is_number=True),
            Column("median error", is_number=True),
            Column("90th percentile", is_number=True),
            Column("bias", is_number=True),
            Column("inside 95%", is_number=True),
        ),
        [
            (
                row.source,
                row.metric,
                row.role,
                str(row.cases),
                f"{row.median_error:.1%}",
                f"{row.p90_error:.1%}",
                f"{row.bias:+.1%}",
                f"{row.inside_share:.0%}",
            )
            for row in summaries(cases)
        ],
    )
