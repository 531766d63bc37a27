"""Engine numbers as they are kept: by kind of host, beside the datasheets.

Fitting the kernels of one GPU must not need the profiles of others, so the numbers that
:mod:`simulator.calibration.software` fits to several GPUs at once have a file of their own.
"""

from pathlib import Path
from typing import Any

from simulator.errors import CalibrationError

HOSTS = {
    "hopper": ("a100_sxm", "h100_sxm", "h200_sxm", "h800_sxm", "h20_sxm"),
    "blackwell": ("b200_sxm", "gb200", "gb300"),
}
"""GPUs that share engine numbers."""
_SGLANG = "_sglang"
NUMBERS_FILE = Path(__file__).parent / "datasheets" / "engine_software.yaml"
"""Where the fit is kept, so that fitting one GPU's kernels needs no other GPU."""


def host_of(gpu: str) -> str:
    """Host whose engine numbers a GPU takes.

    Raises
    ------
    CalibrationError
        If the GPU is unknown.
    """
    for host, gpus in HOSTS.items():
        if gpu.removesuffix(_SGLANG) in gpus:
            return host
    known = ", ".join(gpu for gpus in HOSTS.values() for gpu in gpus)
    raise CalibrationError(f"no engine numbers are fitted for {gpu}; known are {known}")


def model_error() -> dict[str, Any]:
    """How far prices of generation and weight sync are off, as profiles state it."""
    from ruamel.yaml import YAML

    kept: dict[str, Any] = YAML(typ="safe").load(NUMBERS_FILE.read_text(encoding="utf-8"))
    return {
        "generation": kept[_ERROR]["generation"],
        "speculation": _SPECULATION_ERROR,
        "weight_sync": _WEIGHT_SYNC_ERROR,
        "source": _ERROR_SOURCE,
    }


def write_numbers(
    numbers: dict[str, dict[str, float]], unseen_error: float, output: Path = NUMBERS_FILE
) -> None:
    """Keep engine numbers where ``with_engine_numbers`` finds them."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = False
    plain: dict[str, dict[str, float]] = {
        host: {name: float(x) for name, x in of.items()} for host, of in numbers.items()
    }
    draft = output.with_name(f".{output.name}.tmp")
    with draft.open("w", encoding="utf-8") as stream:
        stream.write(_HEADER)
        yaml.dump(plain | {_ERROR: {"generation": unseen_error}}, stream)
    draft.replace(output)


def with_engine_numbers(gpu: str, software: dict[str, Any]) -> dict[str, Any]:
    """The engine's part of a datasheet with the fitted numbers of its host, if it has any."""
    from ruamel.yaml import YAML

    hosts = [host for host, gpus in HOSTS.items() if gpu.removesuffix(_SGLANG) in gpus]
    if not hosts:
        return software
    fitted: dict[str, dict[str, float]] = YAML(typ="safe").load(
        NUMBERS_FILE.read_text(encoding="utf-8")
    )
    return {**software, **fitted[hosts[0]], "source": f"{_SOURCE} {software['source']}"}


_ERROR = "model_error"
_SPECULATION_ERROR = 0.08
"""No verify pass but A100's was measured, and those are validation (assumed) [1]."""
_WEIGHT_SYNC_ERROR = 0.52
"""Half the logarithm of the ratio of the fastest to the slowest fitted sender [1]."""
_ERROR_SOURCE = (
    "Generation: serving rows of Qwen3-32B with engine numbers fitted without it. Speculation: "
    "assumed. Weight sync: spread of the rates of measured senders."
)
_HEADER = """\
# Written by `rollcast calibrate --software`; edits are lost when it runs again.
# Seconds, by host. See docs/serving.md.
"""
_SOURCE = (
    "Step, request, layer, quantise, synchronous, prompt layer: fitted to time per output "
    "token of vLLM (scenarios/published/serving), models without experts. Round, draft pass, "
    "verified token: fitted to EAGLE-3 rounds and a linear profile of vLLM of mid-2025 on H100 "
    "(scenarios/published/verify)."
)
