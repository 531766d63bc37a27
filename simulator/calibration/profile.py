"""A whole hardware profile: every kernel fitted, joined with the datasheet, written as YAML."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from simulator.calibration.choices import CHOICES, SCALED, known_profiles
from simulator.calibration.engine_numbers import model_error, with_engine_numbers, write_numbers
from simulator.calibration.kernels import fit_kernels
from simulator.calibration.scaling import scaled_exchange, scaled_kernels
from simulator.calibration.software import fit_software, unseen_model_error
from simulator.calibration.tables import tables_root
from simulator.data_root import data_root
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile, profile_names
from simulator.specs.hardware import (
    Device,
    EngineSoftware,
    HardwareProfile,
    Kernels,
    ModelError,
    Network,
)
from simulator.specs.pretraining import training_of

_DATASHEETS = "datasheets"
_BASE = "based_on"
"""Key of a datasheet that only tells how it differs from another one."""


def calibrate(name: str, output: Path) -> HardwareProfile:
    """Refit one profile from the installed tables and write it to ``output``.

    The same tables give the same bytes. The file is replaced whole or not at all. A profile that is
    scaled from another one uses that one's file beside ``output``, else the shipped one.

    Raises
    ------
    CalibrationError
        If the profile is unknown or the tables are not installed.
    """
    if name not in known_profiles():
        raise CalibrationError(
            f"no tables are chosen for {name}; known are {', '.join(known_profiles())}"
        )
    sheet = read_datasheet(name)
    if name in SCALED:
        kernels = _scaled(SCALED[name], sheet, output.parent)
    else:
        kernels = _fitted(name, sheet)
    profile = finished(HardwareProfile.model_validate({**sheet, "kernels": kernels.model_dump()}))
    write_profile(profile, output)
    return profile


def read_datasheet(name: str) -> dict[str, Any]:
    """The part of a profile that kernel tables do not hold: rates, links, software, training.

    Engine numbers and training are fitted on their own: see :mod:`simulator.calibration.software`
    and :mod:`simulator.calibration.training`.
    """
    sheet = _sheet(name)
    return {
        **sheet,
        "software": with_engine_numbers(name, sheet["software"]),
        "training": training_of(name).model_dump(mode="json"),
        "model_error": model_error(),
    }


def _sheet(name: str) -> dict[str, Any]:
    """A datasheet as it is written, joined with the one that it is based on."""
    from ruamel.yaml import YAML

    text = files("simulator.calibration").joinpath(_DATASHEETS, f"{name}.yaml").read_text("utf-8")
    sheet: dict[str, Any] = YAML(typ="safe").load(text)
    base = sheet.pop(_BASE, None)
    return _overlaid(_sheet(base), sheet) if base else sheet


def calibrate_software() -> list[HardwareProfile]:
    """Refit the engine numbers of all shipped profiles to published serving measurements.

    Writes the numbers and every shipped profile; kernels stay as they are.
    """
    write_numbers(fit_software(), unseen_model_error())
    profiles = []
    for name in profile_names():
        sheet = read_datasheet(name)
        profile = find_profile(name)
        profile = profile.model_copy(
            update={
                "software": EngineSoftware.model_validate(sheet["software"]),
                "model_error": ModelError.model_validate(sheet["model_error"]),
            }
        )
        write_profile(profile, data_root() / "hardware_profiles" / f"{name}.yaml")
        profiles.append(profile)
    return profiles


def _overlaid(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Sections of ``base`` with the keys that ``changes`` gives."""
    sections = {
        key: {**base[key], **value} if isinstance(value, dict) else value
        for key, value in changes.items()
    }
    return {**base, **sections}


def _fitted(name: str, sheet: dict[str, Any]) -> Kernels:
    tables_root()
    choices = CHOICES[name]
    kernels = fit_kernels(choices, Device.model_validate(sheet["device"]))
    lender = choices.exchange.gpu
    if lender == choices.gpu:
        return kernels
    exchange = scaled_exchange(
        kernels.expert_exchange,
        lender,
        Network.model_validate(read_datasheet(lender)["network"]),
        Network.model_validate(sheet["network"]),
    )
    return kernels.model_copy(update={"expert_exchange": exchange})


def _scaled(base: str, sheet: dict[str, Any], folder: Path) -> Kernels:
    beside = folder / f"{base}.yaml"
    measured = find_profile(str(beside) if beside.is_file() else base)
    return scaled_kernels(
        measured.kernels,
        base,
        (measured.device, measured.network),
        (Device.model_validate(sheet["device"]), Network.model_validate(sheet["network"])),
    )


def finished(profile: HardwareProfile) -> HardwareProfile:
    """The profile as its file holds it, kernels to six significant digits."""
    document = profile.model_dump(mode="json")
    return HardwareProfile.model_validate({**document, "kernels": _rounded(document["kernels"])})


def write_profile(profile: HardwareProfile, output: Path) -> None:
    """Write a profile as YAML, atomically."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 100
    yaml.default_flow_style = False
    draft = output.with_name(f".{output.name}.tmp")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(
            "# Written by `rollcast calibrate`; edits are lost when it runs again.\n"
            "# What is not fitted comes from simulator/calibration/datasheets.\n"
        )
        yaml.dump(profile.model_dump(mode="json"), stream)
    draft.replace(output)


def _rounded(value: Any) -> Any:
    """Floats to six significant digits, everything else as it is."""
    match value:
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case float():
            return float(f"{value:.6g}")
        case _:
            return value
