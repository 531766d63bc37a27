"""The verb ``calibrate``: hardware profiles refitted from measured kernels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import ScenarioError

if TYPE_CHECKING:
    from simulator.specs.hardware import HardwareProfile

Gpu = Annotated[str | None, typer.Option("--gpu", help="GPU to fit, such as h200_sxm.")]
Backend = Annotated[
    str, typer.Option("--backend", help="Engine whose kernels are fitted: vllm or sglang.")
]
Everything = Annotated[bool, typer.Option("--all", help="Refit every known profile.")]
Software = Annotated[
    bool, typer.Option("--software", help="Fit engine numbers of all profiles to serving instead.")
]
Table = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="OP=FILE.csv",
        help="Refit one operator of the profile to measurements of your own; repeatable. "
        "Needs --output.",
    ),
]
LeaveOut = Annotated[
    bool,
    typer.Option(
        "--leave-models-out",
        help="Write nothing; print the errors of expert layers of models that were left out.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write, or folder with --all; default: shipped."),
]
Plots = Annotated[
    Path | None,
    typer.Option("--plots", help="Folder for pictures of fitted against measured times."),
]


def calibrate(
    gpu: Gpu = None,
    backend: Backend = "vllm",
    everything: Everything = False,
    software: Software = False,
    table: Table = None,
    output: Output = None,
    plots: Plots = None,
    leave_models_out: LeaveOut = False,
) -> None:
    """Refit hardware profiles from measured kernel tables (extra: calibrate)."""
    from simulator.calibration.choices import profile_name
    from simulator.calibration.report import kernel_table

    if software:
        if everything or gpu or table or output or plots:
            raise ScenarioError("--software fits every profile and goes with no other option")
        _calibrate_software()
        return
    if everything:
        _refuse_beside_all(gpu, table)
        _calibrate_all(output, plots)
        return
    if gpu is None:
        raise ScenarioError("--gpu, --all or --software must say what to fit")
    name = profile_name(gpu, backend)
    if leave_models_out:
        from simulator.calibration.left_out import left_out_table

        typer.echo(left_out_table(name))
        return
    profile = _refit_own(name, table, output) if table else _refit(name, output)
    typer.echo(kernel_table(profile))
    if plots is not None:
        _plot(profile, plots)


def _calibrate_software() -> None:
    from simulator.calibration.profile import calibrate_software
    from simulator.calibration.report import software_table

    typer.echo(software_table(calibrate_software()))


def _refuse_beside_all(gpu: str | None, table: list[str] | None) -> None:
    for option, value in (("--gpu", gpu), ("--table", table)):
        if value:
            raise ScenarioError(f"{option} and --all exclude each other")


def _calibrate_all(output: Path | None, plots: Path | None) -> None:
    from simulator.calibration import calibrate as refit
    from simulator.calibration.choices import CHOICES, known_profiles
    from simulator.calibration.report import error_table, summary

    folder = output or _shipped()
    _refuse_missing(folder)
    profiles = []
    for name in known_profiles():
        profiles.append(refit(name, folder / f"{name}.yaml"))
        typer.echo(f"wrote {folder / f'{name}.yaml'}", err=True)
    fitted = [profile for profile in profiles if profile.name in CHOICES]
    typer.echo(f"{error_table(fitted)}\n\n{summary(fitted)}")
    if plots is not None:
        for profile in fitted:
            _plot(profile, plots)


def _refit(name: str, output: Path | None) -> "HardwareProfile":
    from simulator.calibration import calibrate as refit

    path = output or _shipped() / f"{name}.yaml"
    _refuse_missing(path.parent)
    profile = refit(name, path)
    typer.echo(f"wrote {path}", err=True)
    return profile


def _refit_own(name: str, tables: list[str], output: Path | None) -> "HardwareProfile":
    from simulator.calibration.own import refitted
    from simulator.calibration.profile import write_profile
    from simulator.specs.catalog import find_profile

    if output is None:
        raise ScenarioError("--table needs --output, so that no shipped profile is overwritten")
    _refuse_missing(output.parent)
    chosen = {}
    for text in tables:
        operator, separator, file = text.partition("=")
        if not (operator and separator and file):
            raise ScenarioError(f"--table {text}: write OP=FILE.csv")
        chosen[operator] = Path(file)
    profile = refitted(find_profile(name), chosen).model_copy(update={"name": output.stem})
    write_profile(profile, output)
    typer.echo(f"wrote {output}", err=True)
    return profile


def _plot(profile: "HardwareProfile", folder: Path) -> None:
    from simulator.calibration.plots import write_plots

    for path in write_plots(profile, folder):
        typer.echo(f"wrote {path}", err=True)


def _shipped() -> Path:
    from simulator.data_root import data_root

    return data_root() / "hardware_profiles"


def _refuse_missing(folder: Path) -> None:
    if not folder.is_dir():
        raise ScenarioError(f"--output: the folder {folder} does not exist")
