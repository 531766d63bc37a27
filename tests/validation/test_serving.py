"""Serving rows: the rules that chose them, how they are priced, and how well."""

import numpy as np
import pytest

from simulator.costs.closed_loop import closed_loop_tpot_s
from simulator.specs.catalog import find_model, profile_names
from simulator.validation.cases import published_folder, published_rows
from simulator.validation.serving import schedules_ahead, serving_cases, serving_setups
from simulator.validation.summary import summaries
from simulator.validation.uncertainty import kernel_sigma

ROWS = published_rows("serving", "tpot.csv")


def test_there_are_enough_rows_models_and_gpus():
    assert len(ROWS) >= 300
    assert ROWS["model"].nunique() >= 4
    assert ROWS["gpu"].nunique() >= 3
    validation = ROWS[[find_model(name).is_moe for name in ROWS["model"]]]
    assert len(validation) >= 300


def test_rows_obey_the_rules_in_the_readme():
    assert (ROWS["ttft_ms"] <= 5_000).all()
    assert not ROWS["model"].str.contains("235B|8B").any()
    setup = [name for name in ROWS.columns if name not in ("id", "measured", "repetitions")]
    assert not ROWS.duplicated([name for name in setup if not name.endswith("_ms")]).any()
    assert ROWS["id"].is_unique
    assert ((ROWS["expert_ranks"] == 1) | (ROWS["expert_ranks"] == ROWS["tensor_ranks"])).all()
    readme = (published_folder("serving") / "README.md").read_text(encoding="utf-8")
    for word in ("Apache-2.0", "aiconfigurator-core", "fitted", "validation", "5 s"):
        assert word in readme


def test_the_file_is_what_the_installed_tables_give(tmp_path):
    pytest.importorskip("aiconfigurator_core")
    from simulator.calibration.serving_points import serving_points, write_points

    write_points(serving_points(), tmp_path / "tpot.csv")
    committed = published_folder("serving") / "tpot.csv"
    assert (tmp_path / "tpot.csv").read_bytes() == committed.read_bytes()


@pytest.mark.parametrize(
    ("version", "is_ahead"),
    [("0.12.0", False), ("0.14.0", True), ("0.19.0", True), ("nightly", True), ("1.0", True)],
)
def test_releases_before_0_14_schedule_in_turns(version, is_ahead):
    assert schedules_ahead(version) is is_ahead
    assert schedules_ahead("unknown (2025-10)")


def test_only_models_without_experts_are_fitted():
    for setup in serving_setups():
        assert (setup.role == "fitted") == (not setup.target.model.is_moe)


def test_cases_are_the_closed_loop_of_each_row():
    by_name = {case.case: case for case in serving_cases()}
    priced = 0
    for setup in serving_setups():
        seconds = closed_loop_tpot_s(setup.costs(), setup.loop)
        priced += len(seconds)
        names = [
            name
            for name in by_name
            if name.startswith(f"{setup.target.model.name} ")
            and f"on {setup.target.profile.name}," in name
        ]
        projected = [by_name[name].projected for name in names]
        for value in seconds:
            assert np.isclose(projected, value).any()
    assert priced == len(by_name)
    assert priced == ROWS["gpu"].isin(profile_names()).sum() - _without_kernel()


def _without_kernel():
    """Rows of shipped profiles that lack the precision."""
    from simulator.specs.catalog import find_profile

    return sum(
        row.precision not in find_profile(row.gpu).kernel_choice
        for row in ROWS[ROWS["gpu"].isin(profile_names())].itertuples()
    )


def test_each_row_prices_the_kernels_of_its_checkpoint():
    for setup in serving_setups():
        row = setup.rows.iloc[0]
        assert setup.target.gemm_kernel == row["gemm"]
        assert setup.target.attention_kernel == row["attention"]


def test_dense_models_are_met_closely():
    """The engine numbers were fitted on them: an error here is a broken price, not a hard case."""
    fitted = [row for row in summaries(serving_cases()) if row.role == "fitted"]
    assert fitted
    for row in fitted:
        assert row.median_error < 0.05
        assert row.p90_error < 0.12
        assert abs(row.bias) < 0.03


def test_an_uncertain_kernel_widens_the_interval():
    setup = next(serving_setups())
    batch, context = np.array([8.0]), np.array([1_000.0])
    plain = kernel_sigma(setup.target, batch, context, 1)[0]
    kernels = setup.target.profile.kernels
    worse = {
        name: fit.model_copy(
            update={"provenance": fit.provenance.model_copy(update={"heldout_p90_error": 0.9})}
        )
        for name, fit in kernels.gemm.items()
    }
    profile = setup.target.profile.model_copy(
        update={"kernels": kernels.model_copy(update={"gemm": worse})}
    )
    wide = kernel_sigma(_with_profile(setup.target, profile), batch, context, 1)[0]
    assert plain < wide < 0.9 / 1.645


def _with_profile(target, profile):
    from dataclasses import replace

    return replace(target, profile=profile)
