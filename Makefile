# rollcast: what a newcomer, a developer and the CI run. `make help` lists it.
#
# Needs python3 (3.11 or newer), make and a package index that pip knows of.
# Everything is installed into .venv, in the releases of constraints.txt, each part when a
# target first needs it.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
PYTEST := $(BIN)/python -m pytest -p no:benchmark

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow check format notebooks docs bench calibrate constraints clean
.NOTPARALLEL: # one environment, one pip at a time

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

# ------------------------------------------------------------------------------- environments

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	    "rollcast needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another one: " \
	    "make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(INSTALL) -e '.[$*]'
	@touch $@

install: $(VENV)/.installed ## install rollcast and what it needs to run

# ---------------------------------------------------------------------------------------- use

demo: $(VENV)/.installed ## forecast one scenario, print its table, write out/
	$(BIN)/rollcast run scenarios/qwen3-235b-sync-512.yaml --out out/

ARGS ?= --all
calibrate: $(VENV)/.installed-calibrate ## fit the hardware profiles anew (Linux, x86-64)
	$(BIN)/python -m simulator.calibration.training
	$(BIN)/rollcast calibrate $(ARGS)
	$(BIN)/rollcast calibrate --software # what serving takes beyond these kernels

# ------------------------------------------------------------------------------------- checks

check: $(VENV)/.installed-dev ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check ## check, and all tests that are quick, with coverage
	$(PYTEST) -n $(JOBS) -m "not slow and not benchmark" --cov --cov-fail-under=90

test-slow: $(VENV)/.installed-dev ## the slow tests: published cases, wheel
	$(PYTEST) -n $(JOBS) -m "slow and not benchmark"

bench: $(VENV)/.installed-dev ## measure speed
	$(BIN)/python -m pytest -m benchmark --benchmark-columns=min,median,max,rounds

notebooks: $(VENV)/.installed-dev ## execute every notebook, changing none
	$(BIN)/jupyter-execute notebooks/*.ipynb

docs: $(VENV)/.installed-docs ## build the documentation into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.installed-dev ## rewrite the code in the house format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# -------------------------------------------------------------------------------- maintenance

constraints: ## resolve the newest releases into constraints.txt (use Python 3.11)
	rm -rf build/resolve
	$(PYTHON) -m venv build/resolve
	build/resolve/bin/python -m pip install --disable-pip-version-check -q '.[calibrate,dev,docs]'
	{ grep '^#' constraints.txt; build/resolve/bin/python -m pip freeze --exclude rollcast; } \
	    > build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove the environment and everything that make wrote
	rm -rf $(VENV) build dist out site htmlcov .coverage .hypothesis \
	    .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
