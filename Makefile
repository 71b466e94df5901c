# Two commands: `make run` does the main job, `make test` checks everything. All set up
# `.venv` first, if it is not there or is older than pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run setup test test-all notebooks bench lint clean

run: $(READY)
	$(BIN)/inopca simulate --witness 2 --witness-until 5 \
	    --out results/paper_defaults.npz --plot results/paper_defaults.png

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

test: lint
	$(BIN)/pytest

test-all: lint
	$(BIN)/pytest -m ''

notebooks: $(READY)
	$(BIN)/jupytext --to notebook --execute notebooks/*.py

bench: $(READY)
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

clean:
	rm -rf $(VENV) results
