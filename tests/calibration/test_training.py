"""The command that refits training: what it reads, what it writes."""

import numpy as np
import pytest

from simulator.calibration import training
from simulator.calibration.training_rule import Coefficients, fits_by_profile, fitted_rows
from simulator.data_root import data_root
from simulator.specs.pretraining import fitted_training, profile_of

SHIPPED = {name: entry.model_dump(mode="json") for name, entry in fitted_training().items()}


def test_a_profile_keeps_everything_but_its_training_section(tmp_path):
    shipped = (data_root() / "hardware_profiles" / "h100_sxm.yaml").read_text(encoding="utf-8")
    stale = tmp_path / "h100_sxm.yaml"
    start, end = shipped.index("\ntraining:"), shipped.index("\nmodel_error:")
    stale.write_text(shipped[:start] + "\ntraining: {mfu: 0.4}" + shipped[end:], encoding="utf-8")
    training.update_profile(stale, SHIPPED)
    assert stale.read_text(encoding="utf-8") == shipped


def test_gpus_without_rows_take_h100s_coefficients():
    fits = fitted_training()
    for name in ("h200_sxm", "h800_sxm", "h20_sxm", "a100_sxm"):
        assert fits[name].points == 0
        assert fits[name].matrix_efficiency["bf16"] == fits["h100_sxm"].matrix_efficiency["bf16"]
        assert "No rows on this GPU" in fits[name].source
    assert "fp8" not in fits["a100_sxm"].matrix_efficiency
    assert "fp4" not in fits["h100_sxm"].matrix_efficiency
    rows = fitted_rows()
    assert sum(fit.points for fit in fits.values()) == len(rows)


def test_a_fit_finds_the_coefficient_that_made_the_rows():
    """Rows made by a known efficiency, the prior wide: the fit returns it."""
    from dataclasses import replace

    truth = Coefficients(h100=0.5)
    rows = [row for row in fitted_rows() if row.gpu == "H100" and row.published_model[0] == "L"]
    errors = training.log_errors(rows, truth)
    made = [
        replace(row, tokens_per_s_per_gpu=row.tokens_per_s_per_gpu * float(np.exp(error)))
        for row, error in zip(rows, errors, strict=True)
    ]
    found = training.fit_group(made, Coefficients(), training.Group(("h100",), (100.0,)))
    assert found.h100 == pytest.approx(0.5, rel=1e-3)


def test_the_command_writes_nothing_when_it_leaves_one_out(monkeypatch, capsys):
    rows = [row for row in fitted_rows() if row.gpu == "H100"][:6]
    rows += [row for row in fitted_rows() if row.published_model == "Llama-3-8B"][:2]
    monkeypatch.setattr(training, "fit", lambda rows: Coefficients())
    monkeypatch.setattr(training, "fitted_rows", lambda: rows)
    monkeypatch.setattr(training, "comparable_rows", lambda: rows)
    monkeypatch.setattr(training, "fit_group", lambda rows, start, group: start)
    before = (data_root() / "scenarios/published/megatron/fit.json").read_bytes()
    assert training.main(["--leave-one-out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len({row.published_model for row in rows})
    assert (data_root() / "scenarios/published/megatron/fit.json").read_bytes() == before


def test_the_command_writes_the_fit_and_the_profiles(monkeypatch, capsys, tmp_path):
    (tmp_path / "scenarios" / "published" / "megatron").mkdir(parents=True)
    profiles = tmp_path / "hardware_profiles"
    profiles.mkdir()
    source = data_root() / "hardware_profiles" / "gb200.yaml"
    (profiles / "gb200.yaml").write_bytes(source.read_bytes())
    rows = fitted_rows()[:5]
    monkeypatch.setattr(training, "data_root", lambda: tmp_path)
    monkeypatch.setattr(training, "fitted_rows", lambda: rows)
    monkeypatch.setattr(training, "fit", lambda rows: Coefficients())
    assert training.main([]) == 0
    assert "5 rows fitted: median" in capsys.readouterr().out
    written = (tmp_path / "scenarios/published/megatron/fit.json").read_text(encoding="utf-8")
    entry = fits_by_profile(Coefficients())[profile_of("GB200")]
    assert f'"dense_passes": {entry.dense_passes}' in written
    assert "bf16: 0.6" in (profiles / "gb200.yaml").read_text(encoding="utf-8")


def test_the_error_on_unseen_models_leaves_each_out(monkeypatch):
    rows = [row for row in fitted_rows() if row.gpu == "H100" and row.published_model[0] == "L"]
    seen = []

    def remember(kept, start, group):
        seen.append({row.published_model for row in kept})
        return start

    monkeypatch.setattr(training, "fit_group", remember)
    error = training.unseen_error(rows, Coefficients(), training.DENSE)
    assert seen == [{"Llama-3.1-405B"}, {"Llama-3-8B"}]
    deviation = np.sqrt(np.mean(training.log_errors(rows, Coefficients()) ** 2))
    # Student's t with two degrees of freedom reaches 4.303 where a normal reaches 1.96.
    assert error == pytest.approx(deviation * 4.303 / 1.96, abs=1e-3)
