"""Verbs that list and show what there is: models, profiles, scenarios, the schema; calibration."""

from pathlib import Path
from typing import Annotated

import typer

from simulator.errors import ScenarioError

Name = Annotated[str, typer.Argument(help="A scenario, model or hardware profile.")]
Gpu = Annotated[str | None, typer.Option("--gpu", help="GPU to fit, such as gb200.")]
Software = Annotated[
    bool, typer.Option("--software", help="Fit engine numbers of all profiles to serving instead.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write; default: the profile.")
]


def models() -> None:
    """List the models that scenarios can name."""
    from simulator.cli.tables import Column, print_table
    from simulator.specs.catalog import find_model, model_names

    rows = []
    for name in model_names():
        model = find_model(name)
        rows.append(
            (
                name,
                f"{model.parameters / 1e9:.1f} B",
                f"{model.active_parameters / 1e9:.1f} B",
                str(model.num_layers),
                "experts" if model.is_moe else "dense",
                f"{model.kv_bytes_per_token('bf16') / 1024:.0f} KiB",
            )
        )
    print_table(
        "Models",
        (
            Column("name"),
            Column("parameters", is_number=True),
            Column("active", is_number=True),
            Column("layers", is_number=True),
            Column("kind"),
            Column("KV a token (bf16)", is_number=True),
        ),
        rows,
    )


def profiles() -> None:
    """List the hardware profiles that scenarios can name."""
    from simulator.cli.tables import Column, print_table
    from simulator.specs.catalog import find_profile, profile_names

    rows = []
    for name in profile_names():
        profile = find_profile(name)
        device = profile.device
        rows.append(
            (
                name,
                profile.description,
                f"{device.hbm_bytes / 2**30:.0f} GiB",
                f"{device.hbm_bytes_per_s / 1e12:.2f} TB/s",
                f"{device.peak_flops_per_s['bf16'] / 1e12:,.0f} TFLOP/s",
                ", ".join(profile.kernel_choice),
            )
        )
    print_table(
        "Hardware profiles",
        (
            Column("name"),
            Column("what it is"),
            Column("memory", is_number=True),
            Column("bandwidth", is_number=True),
            Column("bf16 peak", is_number=True),
            Column("precisions"),
        ),
        rows,
    )


def scenarios() -> None:
    """List the scenarios that come with rollcast."""
    from simulator.cli.tables import Column, print_table
    from simulator.specs.catalog import find_file, scenario_names
    from simulator.specs.document import read_mapping

    rows = []
    for name in scenario_names():
        path = find_file("scenarios", name)
        value, _ = read_mapping(path, str(path))
        rows.append((name, str(value.get("description", ""))))
    print_table("Scenarios", (Column("name"), Column("question")), rows)


def show(name: Name) -> None:
    """Print a scenario, a profile, or what a model's config says."""
    from simulator.specs.catalog import (
        find_file,
        find_model,
        model_names,
        profile_names,
        scenario_names,
    )
    from simulator.specs.document import read_bounded

    folders = {"scenarios": scenario_names(), "hardware_profiles": profile_names()}
    for folder, names in folders.items():
        if name in names:
            path = find_file(folder, name)
            typer.echo(read_bounded(path, str(path)), nl=False)
            return
    is_json = name.endswith(".json") or Path(name).is_dir()
    if name in model_names() or is_json:
        typer.echo(find_model(name).model_dump_json(indent=2))
        return
    if Path(name).is_file():
        typer.echo(read_bounded(Path(name), name), nl=False)
        return
    raise ScenarioError(
        f"nothing is called {name!r}; `rollcast scenarios`, `rollcast profiles` and "
        "`rollcast models` list what there is"
    )


def schema() -> None:
    """Print the JSON Schema of a scenario, for editors."""
    import json

    from simulator.specs.schema import scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


def calibrate(gpu: Gpu = None, software: Software = False, output: Output = None) -> None:
    """Refit a hardware profile from measured kernel tables (extra: calibrate)."""
    from simulator.calibration import calibrate as refit
    from simulator.calibration.profile import calibrate_software
    from simulator.calibration.report import error_table, software_table
    from simulator.data_root import data_root

    if software == (gpu is not None) or (software and output is not None):
        raise ScenarioError("say either --gpu NAME, with --output if wanted, or --software alone")
    if gpu is None:
        typer.echo(software_table(calibrate_software()))
        return
    path = output or data_root() / "hardware_profiles" / f"{gpu}.yaml"
    if not path.parent.is_dir():
        raise ScenarioError(f"--output {path}: the folder {path.parent} does not exist")
    profile = refit(gpu, path)
    typer.echo(error_table([profile]))
    typer.echo(f"wrote {path}", err=True)
