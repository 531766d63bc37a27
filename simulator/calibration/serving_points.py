"""The serving measurements that ``scenarios/published/serving/tpot.csv`` holds, and the rules.

Source is ``systems/silicon_sample.csv`` of the package ``aiconfigurator-core`` (Apache-2.0): time
per output token (TPOT) of vLLM, prefill and decode on the same GPUs, mostly InferenceX runs. Every
rule below was written down before a price was compared with a row, and none looks at an error:

1. vLLM, aggregated, with a known concurrency, on a GPU and a checkpoint listed here.
2. No attention data parallelism: rows give the product of both splits as one of them.
3. Time to first token at most 5 s: above, requests queued and the concurrency was not reached.
4. Not Qwen3-235B and Llama-3.1-8B on vLLM 0.12 (never among the checkpoints here): the first runs
   half as fast as others measured, the second faster than the chip.
5. Rows that several dumps repeat count once: the median over the repetitions.

Write the file anew with ``python -m simulator.calibration.serving_points``.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.calibration.tables import source_name, tables_root
from simulator.data_root import data_root
from simulator.errors import RollcastError

if TYPE_CHECKING:
    import pandas as pd

LONGEST_TTFT_MS = 5_000.0
"""Time to first token above which requests must have queued [ms]."""
_GPUS = ("h100_sxm", "h200_sxm", "b200_sxm")
_INFERENCEX_MEAN_LENGTH = 0.9
"""InferenceX draws lengths evenly from 80-100% of the nominal ones [1]."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the rows of one checkpoint mean in the terms of rollcast."""

    model: str
    """Name under ``workloads/models``."""
    precision: str
    """Precision of a profile."""
    gemm: str
    """Kernel of its dense products."""
    attention: str
    """Kernel of its attention projections, which some checkpoints leave in 16 bits."""
    mean_length: float = _INFERENCEX_MEAN_LENGTH
    """Mean length of prompts and answers, as a share of the nominal ones [1]."""


CHECKPOINTS: Mapping[tuple[str, str], Checkpoint] = {
    ("meta-llama/Llama-3.1-70B", "fp8"): Checkpoint("Llama-3.1-70B", "fp8", "fp8", "fp8"),
    ("meta-llama/Llama-3.1-70B", "fp4"): Checkpoint("Llama-3.1-70B", "fp4", "nvfp4", "nvfp4"),
    ("Qwen/Qwen3-32B", ""): Checkpoint("Qwen3-32B", "bf16", "bf16", "bf16", 1.0),
    ("openai/gpt-oss-120b", "fp4"): Checkpoint("gpt-oss-120b", "mxfp4", "bf16", "bf16"),
    ("moonshotai/Kimi-K2.5", "fp4"): Checkpoint("Kimi-K2.5", "fp4", "nvfp4", "bf16"),
    ("MiniMaxAI/MiniMax-M2.5", "fp8"): Checkpoint("MiniMax-M2.5", "fp8", "fp8_block", "fp8_block"),
    ("MiniMaxAI/MiniMax-M2.5", "fp4"): Checkpoint("MiniMax-M2.5", "fp4", "nvfp4", "bf16"),
}
"""Checkpoints that can be priced, by the names and precisions of the source."""

_KEY = [
    "model",
    "gpu",
    "precision",
    "gemm",
    "attention",
    "kv_precision",
    "tensor_ranks",
    "expert_ranks",
    "prompt_tokens",
    "output_tokens",
    "mean_length",
    "concurrency",
    "engine_version",
]
"""Columns that tell one set-up from another."""


def serving_points() -> "pd.DataFrame":
    """Rows that can be priced, in a fixed order."""
    import pandas as pd

    path = tables_root().parent / "silicon_sample.csv"
    rows = pd.read_csv(path, keep_default_na=True)
    rows = rows[(rows["backend"] == "vllm") & (rows["mode"] == "agg")]
    rows = rows[rows["system"].isin(_GPUS) & (rows["attention_dp_size"].fillna(1.0) <= 1.0)]
    rows = rows[rows["silicon_ttft_ms"] <= LONGEST_TTFT_MS]
    told = rows["silicon_data_source"]
    rows = rows.assign(
        concurrency=told.str.extract(r"silicon_concurrency=(\d+)")[0].astype(float),
        measured=told.str.extract(r"measured=(\d{4}-\d\d-\d\d)")[0].fillna(""),
        asked=rows["precision"].fillna(""),
    )
    names = pd.MultiIndex.from_frame(rows[["model_path", "asked"]])
    rows = rows[rows["concurrency"].notna() & names.isin(list(CHECKPOINTS))]
    chosen = [CHECKPOINTS[key] for key in zip(rows["model_path"], rows["asked"], strict=True)]
    named = ("model", "precision", "gemm", "attention", "mean_length")
    points = pd.DataFrame(
        {
            "id": rows["id"],
            **{name: [getattr(one, name) for one in chosen] for name in named},
            "gpu": rows["system"],
            "kv_precision": [
                _cache_precision(gpu, one) for gpu, one in zip(rows["system"], chosen, strict=True)
            ],
            "tensor_ranks": rows["tp_size"].astype(int),
            "expert_ranks": rows["moe_ep_size"].clip(lower=1.0).astype(int),
            "prompt_tokens": rows["isl"],
            "output_tokens": rows["osl"],
            "concurrency": rows["concurrency"].astype(int),
            "engine_version": [
                _version(version, date)
                for version, date in zip(rows["backend_version"], rows["measured"], strict=True)
            ],
            "measured": rows["measured"],
            "ttft_ms": rows["silicon_ttft_ms"],
            "tpot_ms": rows["silicon_tpot_ms"],
        }
    )
    repeated = points.sort_values(["measured", "id"]).groupby(_KEY, sort=True)
    merged = repeated.agg(
        id=("id", "last"),
        measured=("measured", "last"),
        repetitions=("id", "size"),
        ttft_ms=("ttft_ms", "median"),
        tpot_ms=("tpot_ms", "median"),
    )
    return merged.reset_index().round({"ttft_ms": 3, "tpot_ms": 4})


def _cache_precision(gpu: str, checkpoint: Checkpoint) -> str:
    """Precision of the cache, which the source does not state (assumed).

    Checkpoints in NVFP4 ask for an 8-bit cache themselves; InferenceX and vLLM's recipes serve
    Llama and gpt-oss with one on Blackwell, and with none on Hopper.
    """
    is_8_bit = checkpoint.precision == "fp4" or (
        gpu == "b200_sxm" and checkpoint.model in ("Llama-3.1-70B", "gpt-oss-120b")
    )
    return "fp8" if is_8_bit else "bf16"


def _version(version: object, measured: str) -> str:
    """Release of the engine; where the source has none, the month of the measurement."""
    text = str(version)
    if text == "nan":
        return f"unknown ({measured[:7]})"
    return "nightly" if text.startswith("nightly") else text


def main() -> int:
    """Write the committed file; 2 is a failure that a user can mend."""
    path = data_root() / "scenarios" / "published" / "serving" / "tpot.csv"
    try:
        points = serving_points()
    except RollcastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    write_points(points, path)
    sys.stderr.write(f"wrote {len(points)} points of {source_name()} to {path}\n")
    return 0


def write_points(points: "pd.DataFrame", path: Path) -> None:
    """Write points as CSV, the same bytes for the same points."""
    points.to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    sys.exit(main())
