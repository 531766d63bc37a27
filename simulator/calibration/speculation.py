"""What speculation adds to an iteration, fitted to rounds of vLLM that others published.

EAGLE-3 rounds on H100 by draft length give the constant of a round and the least time of a draft
pass; a published linear profile of vLLM gives what a verified token takes beyond its kernels
(``scenarios/published/verify``).
"""

from dataclasses import replace

import numpy as np

from simulator.calibration.engine_fit import NO_ENGINE, fit_seconds
from simulator.calibration.fitting import rounded
from simulator.costs.layers import FloatArray
from simulator.errors import CalibrationError
from simulator.validation.cases import published_rows
from simulator.validation.verify import forward_costs, measured_round_s, round_rows

_UNCAPTURED = 2**40


def fit_speculation(engine: dict[str, float]) -> dict[str, float]:
    """Numbers of a speculative round, given those of a plain iteration."""
    verify_token_s = _fit_verify_token()
    rows = [(row, costs) for row, costs in round_rows() if costs.draft_length]
    if not rows:
        raise CalibrationError("speculative rounds were measured on h100_sxm; ship its profile")
    measured = np.array([measured_round_s(row) for row, _ in rows])
    shapes = [
        (np.array([row["sequences"]], np.float64), np.array([row["context_tokens"]], np.float64))
        for row, _ in rows
    ]

    def residuals(x: FloatArray) -> FloatArray:
        software = NO_ENGINE.model_copy(
            update={
                **engine,
                "verify_token_s": verify_token_s,
                "speculative_round_s": x[0],
                "draft_pass_s": x[1],
                "captured_tokens": _UNCAPTURED,
            }
        ).scheduled(is_ahead=False)
        seconds = [
            float(replace(costs, software=software).round_cost(*shape).total_s[0])
            for (_, costs), shape in zip(rows, shapes, strict=True)
        ]
        return np.asarray(np.log(seconds) - np.log(measured))

    # A floor is felt only where it binds, so the search for it starts above the kernels.
    x = fit_seconds(residuals, np.full(2, 1e-3), np.zeros(2))
    return {
        "speculative_round_s": float(x[0]),
        "draft_pass_s": float(x[1]),
        "verify_token_s": verify_token_s,
    }


def _fit_verify_token() -> float:
    """Seconds that the published linear profile takes more than our passes, by verified token.

    Over batches of 1 to 64 and 2 to 8 tokens a sequence, as the profile was measured; where it is
    lower, the number is 0.
    """
    rows = published_rows("verify", "linear_profile.csv")
    told = dict(zip(rows["quantity"], rows["value"], strict=True))
    model, gpu = str(rows["model"].iloc[0]), str(rows["gpu"].iloc[0])
    sequences = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    context = np.full_like(sequences, 1_000.0)
    tokens: list[FloatArray] = []
    excess: list[FloatArray] = []
    for query in (2, 4, 6, 8):
        ours = replace(forward_costs(model, gpu, query), software=NO_ENGINE)
        priced = replace(ours, captured_tokens=_UNCAPTURED).round_cost(sequences, context).target_s
        batched = sequences * query
        profile = (
            told["pass"]
            + told["cached_token"] * sequences * context
            + told["batched_token"] * batched
        )
        tokens.append(batched)
        excess.append(profile - priced)
    x, y = np.concatenate(tokens), np.concatenate(excess)
    return max(float(rounded(np.array([np.sum(x * y) / np.sum(x * x)]))[0]), 0.0)
