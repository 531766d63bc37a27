"""Precision that a checkpoint's matrices are published in, told by ``quantization_config``.

A config without that object is 16-bit. Of the modules that stay in 16 bits only attention is read
from the file; :class:`~simulator.specs.model.ModelSpec` has one rule for the others. A side file
such as ``hf_quant_config.json`` is not seen here.
"""

from simulator.specs.config_reader import ConfigReader
from simulator.specs.hardware import Precision

_METHODS: dict[str, Precision] = {"fp8": "fp8", "fbgemm_fp8": "fp8", "mxfp4": "mxfp4"}
_WEIGHT_TYPES: dict[tuple[str, int], Precision] = {
    ("float", 8): "fp8",
    ("float", 4): "fp4",
    # With a 16-bit scale for 32 weights, 4-bit integers take the bytes of FP4.
    ("int", 4): "fp4",
}


_UNQUANTISED_KEYS = ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers")


def quantises_attention(reader: ConfigReader) -> bool:
    """Whether the projections of attention are quantised with the other matrices."""
    quantization = reader.nested("quantization_config")
    if quantization is None:
        return True
    kept = [str(name) for key in _UNQUANTISED_KEYS for name in quantization.items(key) or ()]
    return not any("self_attn" in name for name in kept)


def native_precision(reader: ConfigReader) -> Precision:
    """What the matrices of a checkpoint are stored in."""
    quantization = reader.nested("quantization_config")
    if quantization is None:
        return "bf16"
    method = quantization.text("quant_method")
    if method in _METHODS:
        return _METHODS[method]
    if method.startswith("modelopt"):
        return _modelopt_precision(quantization)
    if method == "compressed-tensors":
        return _compressed_tensors_precision(quantization)
    raise quantization.refusal(
        f"quant_method {method or 'nothing'} cannot be priced; supported are "
        f"{', '.join(_METHODS)}, modelopt and compressed-tensors"
    )


def _modelopt_precision(quantization: ConfigReader) -> Precision:
    algorithm = quantization.text("quant_algo").upper()
    if "FP4" in algorithm:
        return "fp4"
    if "FP8" in algorithm:
        return "fp8"
    raise quantization.refusal(
        f"quant_algo {algorithm or 'nothing'} cannot be priced; supported are FP8 and NVFP4"
    )


def _compressed_tensors_precision(quantization: ConfigReader) -> Precision:
    groups = quantization.nested("config_groups")
    found: set[Precision] = set()
    for group_name in sorted(groups.keys()) if groups else ():
        group = groups.nested(group_name) if groups else None
        weights = group.nested("weights") if group else None
        if weights is None:
            continue
        kind, bits = weights.text("type") or "int", weights.size("num_bits")
        if (kind, bits) not in _WEIGHT_TYPES:
            raise weights.refusal(
                f"num_bits {bits} of type {kind} cannot be priced; supported are 8-bit floats "
                "and 4-bit floats or integers"
            )
        found.add(_WEIGHT_TYPES[kind, bits])
    if len(found) != 1:
        raise quantization.refusal(
            "config_groups must give the weights of all groups one precision"
        )
    return found.pop()
