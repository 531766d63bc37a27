"""A whole hardware profile: every kernel fitted, joined with the datasheet, written as YAML."""

from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from simulator.calibration.attention import fit_decode, fit_prefill, grouped_rows, latent_rows
from simulator.calibration.choices import CHOICES, GpuChoices
from simulator.calibration.engine_numbers import with_engine_numbers, write_numbers
from simulator.calibration.messages import (
    all_reduce_rows,
    exchange_rows,
    fit_all_reduce,
    fit_exchange,
)
from simulator.calibration.products import fit_gemm, fit_moe, gemm_rows, moe_rows
from simulator.calibration.software import fit_software
from simulator.calibration.tables import tables_root
from simulator.data_root import data_root
from simulator.errors import CalibrationError
from simulator.specs.catalog import find_profile, profile_names
from simulator.specs.hardware import CachePrecision, Device, HardwareProfile, Kernels


def calibrate(gpu: str, output: Path) -> HardwareProfile:
    """Refit the profile of one GPU from the installed tables and write it to ``output``.

    The same tables give the same bytes. The file is replaced whole or not at all.

    Raises
    ------
    CalibrationError
        If the GPU is unknown or the tables are not installed.
    """
    choices = CHOICES.get(gpu)
    if choices is None:
        raise CalibrationError(f"no tables are chosen for {gpu}; known are {', '.join(CHOICES)}")
    tables_root()
    sheet = read_datasheet(gpu)
    device = Device.model_validate(sheet["device"])
    profile = HardwareProfile.model_validate(
        {**sheet, "kernels": fit_kernels(gpu, choices, device).model_dump()}
    )
    write_profile(profile, output)
    return profile


def read_datasheet(gpu: str) -> dict[str, Any]:
    """The part of a profile that is not fitted to kernel tables: rates, links, training, and the
    engine's software with the numbers that serving measurements gave.
    """
    from ruamel.yaml import YAML

    text = files("simulator.calibration").joinpath("datasheets", f"{gpu}.yaml").read_text("utf-8")
    sheet: dict[str, Any] = YAML(typ="safe").load(text)
    return {**sheet, "software": with_engine_numbers(gpu, sheet["software"])}


def calibrate_software() -> list[HardwareProfile]:
    """Refit the engine numbers of all shipped profiles to published serving measurements.

    Writes the numbers and every shipped profile; kernels stay as they are.
    """
    write_numbers(fit_software())
    profiles = []
    for name in profile_names():
        software = read_datasheet(name)["software"]
        profile = find_profile(name)
        profile = profile.model_copy(
            update={"software": type(profile.software).model_validate(software)}
        )
        write_profile(profile, data_root() / "hardware_profiles" / f"{name}.yaml")
        profiles.append(profile)
    return profiles


def fit_kernels(gpu: str, choices: GpuChoices, device: Device) -> Kernels:
    """Fit every kernel of a GPU."""
    context = f"attention/{choices.attention}/context_attention_perf"
    generation = f"attention/{choices.attention}/generation_attention_perf"
    latent_context = f"mla/{choices.latent}/context_mla_perf"
    latent_generation = f"mla/{choices.latent}/generation_mla_perf"
    caches: tuple[CachePrecision, ...] = get_args(CachePrecision)
    prefill = {
        kv: fit_prefill(grouped_rows(gpu, context, kv), kv, device, context) for kv in caches
    }
    latent_prefill = {
        kv: fit_prefill(latent_rows(gpu, latent_context, kv), kv, device, latent_context)
        for kv in caches
    }
    return Kernels(
        gemm={
            precision: fit_gemm(gemm_rows(gpu, choice), precision, device, choice.table)
            for precision, choice in choices.gemm.items()
        },
        moe={
            precision: fit_moe(moe_rows(gpu, choice), precision, device, choice.table)
            for precision, choice in choices.moe.items()
        },
        prefill_attention=prefill,
        latent_prefill_attention=latent_prefill,
        decode_attention={
            kv: fit_decode(
                grouped_rows(gpu, generation, kv), kv, device, generation, prefill["bf16"]
            )
            for kv in caches
        },
        latent_decode_attention={
            kv: fit_decode(
                latent_rows(gpu, latent_generation, kv),
                kv,
                device,
                latent_generation,
                latent_prefill["bf16"],
            )
            for kv in caches
        },
        all_reduce=fit_all_reduce(
            all_reduce_rows(gpu, choices.all_reduce),
            f"comm/{choices.all_reduce}/custom_allreduce_perf",
        ),
        expert_exchange=fit_exchange(exchange_rows(gpu, choices.exchange), choices.exchange),
    )


def write_profile(profile: HardwareProfile, output: Path) -> None:
    """Write a profile as YAML, atomically."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 100
    yaml.default_flow_style = False
    draft = output.with_name(f".{output.name}.tmp")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(
            f"# Written by `rollcast calibrate --gpu {profile.name}`; edits are lost when it runs "
            "again.\n# What is not fitted comes from simulator/calibration/datasheets.\n"
        )
        document = profile.model_dump(mode="json")
        yaml.dump({**document, "kernels": _rounded(document["kernels"])}, stream)
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
