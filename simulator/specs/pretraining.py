"""Published pre-training rows: what was run, and which rows may be fitted.

Rows stand under ``scenarios/published/megatron``; its README has the rule of the split, which is
:data:`FITTED_MODELS` here. Read with the standard library, so that a fit and a validation, which
do not know each other, share one reading.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from simulator.data_root import data_root
from simulator.specs.hardware import Device, Network, Precision
from simulator.specs.model import ModelSpec
from simulator.specs.training_fit import TrainingFit

FITTED_MODELS = frozenset({"Llama-3-8B", "Llama-3.1-405B", "Qwen3-30B-A3B", "Qwen3-235B-A22B"})
"""First, third (and fifth) model of each kind, in order of parameters."""

_OLDEST_EXPERTS = (26, 2, 1)
"""Expert models of older releases ran at a fraction of the speed that the next one has on the same
GPUs and sharding (Qwen3-30B-A3B on H100: 5,113 tokens/s, then 9,058)."""
_FUSED_SINCE = (26, 6)
_FOLDER = "megatron"
_CATALOG_NAMES = {"Llama-3-8B": "Llama-3.1-8B", "Llama-3-70B": "Llama-3.1-70B"}
_PRECISIONS: dict[str, tuple[Precision, Literal["tensor", "block"]]] = {
    "BF16": ("bf16", "tensor"),
    "FP8": ("fp8", "tensor"),
    "FP8-CS": ("fp8", "tensor"),
    "FP8-MX": ("fp8", "block"),
    "MXFP8": ("fp8", "block"),
    "NVFP4": ("fp4", "tensor"),
}
_UNPRINTED_PRECISION = "FP8-CS (FP8-MX)"


@dataclass(frozen=True, slots=True)
class PretrainingRow:
    """One measured run."""

    release: str
    published_model: str
    gpu: str
    gpus: int
    printed_precision: str
    global_batch: int
    micro_batch: int
    sequence_tokens: int
    tensor: int
    pipeline: int
    context: int
    virtual_pipeline: int
    expert: int
    tokens_per_s_per_gpu: float
    is_annotated: bool = False
    """Whether the publisher's footnote calls the figure exceptional."""
    sharding: Literal["auto", "optimizer", "full"] = "auto"
    recompute: Literal["none", "selective", "full"] = "none"

    @property
    def model(self) -> str:
        """Name under ``workloads/models``."""
        return _CATALOG_NAMES.get(self.published_model, self.published_model)

    @property
    def precision(self) -> Precision:
        """Precision of the matrix products."""
        return _PRECISIONS[self.printed_precision][0]

    @property
    def fp8_scaling(self) -> Literal["tensor", "block"]:
        """How FP8 is scaled."""
        return _PRECISIONS[self.printed_precision][1]

    @property
    def has_fused_experts(self) -> bool:
        """Whether experts ran fused under full CUDA graphs: Blackwell from 26.06 on."""
        is_release = self.release[0].isdigit()
        return "B" in self.gpu and is_release and release_number(self.release) >= _FUSED_SINCE

    def describe(self) -> str:
        """Short text for tables."""
        ranks = f"TP{self.tensor} PP{self.pipeline} CP{self.context} VP{self.virtual_pipeline}"
        return (
            f"{self.published_model} {self.printed_precision} on {self.gpus} {self.gpu}, {ranks} "
            f"EP{self.expert}, batch {self.global_batch} x {self.sequence_tokens}, {self.release}"
        )


def release_number(release: str) -> tuple[int, ...]:
    """Release as a number that sorts.

    >>> release_number("26.02.01") > release_number("26.02")
    True
    """
    return tuple(int(part) for part in release.split("."))


def is_comparable(row: PretrainingRow, model: ModelSpec) -> bool:
    """Whether a row stands for software of today: not annotated, experts from 26.02.01 on."""
    is_old = model.is_moe and release_number(row.release) < _OLDEST_EXPERTS
    return not (row.is_annotated or is_old)


def megatron_rows() -> Iterator[PretrainingRow]:
    """Rows of Megatron-Bridge; a cell with a second figure in brackets gives a second row."""
    for cells in _read("training_throughput.csv"):
        cells["precision"] = cells["precision"] or _UNPRINTED_PRECISION
        if "(" not in cells["tokens_per_s_per_gpu"]:
            yield _row({name: _halves(value)[0] for name, value in cells.items()})
            continue
        for half in (0, 1):
            yield _row({name: _halves(value)[half] for name, value in cells.items()})


def other_rows() -> Iterator[PretrainingRow]:
    """Rows of Megatron-Bridge that its table does not have."""
    return map(_row, _read("other_rows.csv"))


def torchtitan_rows() -> Iterator[PretrainingRow]:
    """Rows of torchtitan."""
    return map(_row, _read("training_throughput.csv", "torchtitan"))


@cache
def published_gpus() -> dict[str, tuple[Device, Network]]:
    """Datasheet rates of the GPUs that rows were measured on, by the name in the rows."""
    gpus = {}
    for cells in _read("gpus.csv"):
        peaks = {
            name: float(cells[f"{name}_flops_per_s"])
            for name in ("bf16", "fp8", "fp4")
            if cells[f"{name}_flops_per_s"]
        }
        device = Device.model_validate(
            {
                "peak_flops_per_s": peaks,
                "sm_count": int(cells["sm_count"]),
                "hbm_bytes": float(cells["hbm_bytes"]),
                "hbm_bytes_per_s": float(cells["hbm_bytes_per_s"]),
                "source": cells["source"],
            }
        )
        network = Network(
            scale_up_gpus=int(cells["scale_up_gpus"]),
            node_gpus=int(cells["node_gpus"]),
            scale_up_bytes_per_s=float(cells["scale_up_bytes_per_s"]),
            scale_up_latency_s=0.0,
            scale_out_bytes_per_s=float(cells["scale_out_bytes_per_s"]),
            scale_out_latency_s=0.0,
            host_bytes_per_s=float(cells["host_bytes_per_s"]),
            source=cells["source"],
        )
        gpus[cells["gpu"]] = (device, network)
    return gpus


def profile_of(gpu: str) -> str:
    """Hardware profile of a GPU in the rows."""
    return next(cells["profile"] for cells in _read("gpus.csv") if cells["gpu"] == gpu)


@cache
def fitted_training() -> dict[str, TrainingFit]:
    """Fitted coefficients by hardware profile, as the last fit left them."""
    text = (_published() / _FOLDER / "fit.json").read_text(encoding="utf-8")
    return {name: TrainingFit.model_validate(fit) for name, fit in json.loads(text).items()}


def training_of(profile: str) -> TrainingFit:
    """Fitted coefficients of a hardware profile; those of its GPU, whatever engine it serves."""
    return fitted_training()[profile.removesuffix("_sglang")]


def _published() -> Path:
    return data_root() / "scenarios" / "published"


def _read(file: str, folder: str = _FOLDER) -> list[dict[str, str]]:
    with (_published() / folder / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _halves(cell: str) -> tuple[str, str]:
    found = re.fullmatch(r"(\S+) \((\S+)\)", cell)
    return (found[1], found[2]) if found else (cell, cell)


def _row(cells: dict[str, str]) -> PretrainingRow:
    def count(name: str) -> int:
        return 1 if cells[name] in ("n/a", "") else int(float(cells[name]))

    return PretrainingRow(
        release=cells["release"],
        published_model=cells["model"],
        gpu=cells["system"],
        gpus=count("gpus"),
        printed_precision=cells["precision"],
        global_batch=count("global_batch"),
        micro_batch=count("micro_batch"),
        sequence_tokens=count("sequence_length"),
        tensor=count("tp"),
        pipeline=count("pp"),
        context=count("cp"),
        virtual_pipeline=count("vp"),
        expert=count("ep"),
        tokens_per_s_per_gpu=float(cells["tokens_per_s_per_gpu"]),
        is_annotated="[^" in cells.get("model_tflops_per_gpu", ""),
        sharding=cells.get("sharding", "auto"),  # type: ignore[arg-type]
        recompute=cells.get("recompute", "none"),  # type: ignore[arg-type]
    )
