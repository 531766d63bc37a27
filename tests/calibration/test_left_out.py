"""Whole models left out of the fit of the experts, on the committed sample."""

from dataclasses import replace

import pytest

from simulator.calibration import left_out
from simulator.calibration.choices import CHOICES
from simulator.errors import CalibrationError
from tests.calibration.test_sample import sample


def test_each_shipped_model_in_the_rows_is_left_out_once(monkeypatch):
    chosen = CHOICES["h100_sxm"]
    only = replace(chosen, moe={"fp8_block": chosen.moe["fp8_block"]})
    monkeypatch.setattr(left_out, "CHOICES", {"h100_sxm": only})
    rows = sample("moe", gpu="h100_sxm", precision="fp8_block")
    monkeypatch.setattr(left_out, "moe_rows", lambda gpu, choice: rows)
    lines = left_out.left_out_table("h100_sxm").splitlines()[2:]
    models = [line.split("|")[2].strip() for line in lines]
    assert "Qwen3-235B-A22B" in models
    assert len(models) == len(set(models)) >= 2
    for line in lines:
        assert float(line.split("|")[4].strip().rstrip("%")) < 30.0


def test_a_scaled_profile_has_no_rows_to_leave_out():
    with pytest.raises(CalibrationError, match="h20_sxm is not fitted"):
        left_out.left_out_table("h20_sxm")
