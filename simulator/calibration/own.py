"""Operators of a profile refitted to a user's own measurements, everything else kept."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from simulator.calibration.attention import (
    TABLE_DTYPE,
    decode_compute,
    fit_decode,
    fit_prefill,
    grouped_rows,
    latent_rows,
)
from simulator.calibration.choices import MessageChoice, TableChoice
from simulator.calibration.messages import (
    all_reduce_rows,
    exchange_rows,
    fit_all_reduce,
    fit_exchange,
)
from simulator.calibration.products import fit_gemm, fit_moe, gemm_rows, moe_rows
from simulator.calibration.profile import finished
from simulator.calibration.tables import COLUMNS, check_own_table, read_table
from simulator.errors import CalibrationError
from simulator.specs.hardware import CachePrecision, HardwareProfile, KernelPrecision
from simulator.specs.kernels import (
    CollectiveFit,
    DecodeAttentionFit,
    ExchangeFit,
    GemmFit,
    MoeFit,
    PrefillAttentionFit,
)

Fit = TypeVar(
    "Fit", GemmFit, MoeFit, DecodeAttentionFit, PrefillAttentionFit, CollectiveFit, ExchangeFit
)
Attention = TypeVar("Attention", DecodeAttentionFit, PrefillAttentionFit)

_GEMM_DTYPES: Mapping[str, KernelPrecision] = MappingProxyType(
    {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
)
_MOE_DTYPES: Mapping[str, KernelPrecision] = MappingProxyType(
    {**_GEMM_DTYPES, "w4a16_mxfp4": "mxfp4", "w4a8_mxfp4_mxfp8": "mxfp4_mxfp8"}
)
_CACHE_DTYPES: Mapping[str, CachePrecision] = MappingProxyType(
    {dtype: precision for precision, dtype in TABLE_DTYPE.items()}
)


@dataclass(frozen=True, slots=True)
class _Own:
    """A profile and a table that one of its operators is refitted to."""

    profile: HardwareProfile
    path: Path

    @property
    def table(self) -> str:
        return str(self.path)

    def told(self, fit: Fit) -> Fit:
        """A fit whose provenance names the file and nothing of this machine."""
        origin = fit.provenance.model_copy(
            update={"source": "own measurements", "table": self.path.name}
        )
        return fit.model_copy(update={"provenance": origin})

    def names(self, column: str, known: Iterable[str]) -> list[str]:
        """Names in a column, all of which must be known."""
        found = sorted(set(read_table("", self.table)[column].astype(str)))
        unknown = [name for name in found if name not in set(known)]
        if unknown:
            raise CalibrationError(
                f"{self.path}: {column} {', '.join(unknown)} cannot be priced; "
                f"allowed are {', '.join(sorted(known))}"
            )
        return found


def refitted(profile: HardwareProfile, tables: Mapping[str, Path]) -> HardwareProfile:
    """The profile with each operator that has a table refitted to it.

    The precisions, widths of heads and numbers of ranks that a table holds are refitted; the
    others keep what they had.

    Raises
    ------
    CalibrationError
        If an operator is unknown, or a table cannot be read or has too few rows of one kind.
    """
    for operator, path in tables.items():
        if operator not in COLUMNS:
            raise CalibrationError(
                f"no operator {operator!r}; known are {', '.join(sorted(COLUMNS))}"
            )
        check_own_table(operator, path)
        try:
            kernels = _REFITS[operator](_Own(profile, path))
        except CalibrationError as error:
            message = str(error)
            prefix = "" if str(path) in message else f"{path}: {operator}: "
            raise CalibrationError(f"{prefix}{message}") from error
        profile = profile.model_copy(update={"kernels": profile.kernels.model_copy(update=kernels)})
    return finished(profile)


def _gemm(own: _Own) -> Mapping[str, Any]:
    fits = dict(own.profile.kernels.gemm)
    for dtype in own.names("gemm_dtype", _GEMM_DTYPES):
        precision = _GEMM_DTYPES[dtype]
        rows = gemm_rows("", TableChoice(own.table, dtype))
        fits[precision] = own.told(fit_gemm(rows, precision, own.profile.device, own.table))
    return {"gemm": fits}


def _moe(own: _Own) -> Mapping[str, Any]:
    fits = dict(own.profile.kernels.moe)
    for dtype in own.names("moe_dtype", _MOE_DTYPES):
        precision = _MOE_DTYPES[dtype]
        rows = moe_rows("", TableChoice(own.table, dtype))
        fit = own.told(fit_moe(rows, precision, own.profile.device, own.table))
        divided = own.told(fit.divided) if fit.divided else None
        fits[precision] = fit.model_copy(update={"divided": divided})
    return {"moe": fits}


def _prefill(own: _Own) -> Mapping[str, Any]:
    def fit(kv: CachePrecision, width: int) -> PrefillAttentionFit:
        rows = grouped_rows("", own.table, kv, width)
        return fit_prefill(rows, kv, own.profile.device, own.table)

    return {"prefill_attention": _widths(own, own.profile.kernels.prefill_attention, fit)}


def _decode(own: _Own) -> Mapping[str, Any]:
    kernels = own.profile.kernels

    def fit(kv: CachePrecision, width: int) -> DecodeAttentionFit:
        compute = decode_compute(
            kernels.prefill_attention[kv],
            kernels.latent_decode_attention[kv],
            kernels.latent_prefill_attention[kv],
        )
        rows = grouped_rows("", own.table, kv, width)
        return fit_decode(rows, kv, own.profile.device, own.table, compute)

    return {"decode_attention": _widths(own, kernels.decode_attention, fit)}


def _widths(
    own: _Own,
    known: Mapping[CachePrecision, Attention],
    fit: Callable[[CachePrecision, int], Attention],
) -> dict[CachePrecision, Attention]:
    """The fits of a profile with the widths of a table replaced or added."""
    fits = dict(known)
    rows = read_table("", own.table)
    for dtype in own.names("kv_cache_dtype", _CACHE_DTYPES):
        kv = _CACHE_DTYPES[dtype]
        if kv not in known:
            raise CalibrationError(f"{own.profile.name} has no {kv} cache")
        for width in sorted(set(rows["head_dim"][rows["kv_cache_dtype"] == dtype].tolist())):
            fits[kv] = _with_width(fits[kv], own.told(fit(kv, width)))
    return fits


def _with_width(base: Attention, new: Attention) -> Attention:
    if base.head_dim == new.head_dim:
        return new.model_copy(update={"other_widths": base.other_widths})
    others: dict[float, Any] = {other.head_dim: other for other in base.other_widths}
    others[new.head_dim] = new
    return base.model_copy(update={"other_widths": tuple(others.values())})


def _latent_prefill(own: _Own) -> Mapping[str, Any]:
    fits = dict(own.profile.kernels.latent_prefill_attention)
    for dtype in own.names("kv_cache_dtype", _CACHE_DTYPES):
        kv = _CACHE_DTYPES[dtype]
        rows = latent_rows("", own.table, kv)
        fits[kv] = own.told(fit_prefill(rows, kv, own.profile.device, own.table))
    return {"latent_prefill_attention": fits}


def _latent_decode(own: _Own) -> Mapping[str, Any]:
    fits = dict(own.profile.kernels.latent_decode_attention)
    for dtype in own.names("kv_cache_dtype", _CACHE_DTYPES):
        kv = _CACHE_DTYPES[dtype]
        rows = latent_rows("", own.table, kv)
        fits[kv] = own.told(fit_decode(rows, kv, own.profile.device, own.table))
    return {"latent_decode_attention": fits}


def _all_reduce(own: _Own) -> Mapping[str, Any]:
    fits = {fit.ranks: fit for fit in own.profile.kernels.all_reduce}
    for fit in fit_all_reduce(all_reduce_rows(MessageChoice("", own.table)), own.table):
        fits[fit.ranks] = own.told(fit)
    return {"all_reduce": tuple(fits[ranks] for ranks in sorted(fits))}


def _exchange(own: _Own) -> Mapping[str, Any]:
    fit = fit_exchange(exchange_rows(MessageChoice("", own.table)), own.table)
    return {"expert_exchange": own.told(fit)}


_REFITS: Mapping[str, Callable[[_Own], Mapping[str, Any]]] = MappingProxyType(
    {
        "gemm": _gemm,
        "moe": _moe,
        "prefill_attention": _prefill,
        "decode_attention": _decode,
        "latent_prefill_attention": _latent_prefill,
        "latent_decode_attention": _latent_decode,
        "all_reduce": _all_reduce,
        "expert_exchange": _exchange,
    }
)
