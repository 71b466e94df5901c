# Two commands: `make run` does the main job, `make test` checks everything. Both set up
# `.venv` first, if it is not there or is older than pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The faces of one experiment are not in the project; where they are at hand, they are used.
export INOPCA_OLIVETTI ?= $(wildcard $(abspath ../shared/data/olivettifaces.mat))
BROWSERS := chromium chromium-browser google-chrome

.PHONY: run setup browser test test-slow test-docs test-all test-versions test-gpu-compile docs docs-serve notebooks bench lint clean

run: $(READY)
	$(BIN)/inopca reproduce --out report

setup: $(READY) browser

# For the tests of pages, which are skipped without one.
browser:
	@which $(BROWSERS) | grep -q . || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -qq -y --no-install-recommends \
	        chromium fonts-dejavu-core >/dev/null; \
	fi || true
	@which $(BROWSERS) | grep -q . || \
	    echo "no browser: the tests of the report's pages are skipped (install chromium)"

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

test: lint browser
	$(BIN)/pytest

test-slow: $(READY) browser
	$(BIN)/pytest -m slow

# The code that the pages show, and the examples of docstrings.
test-docs: $(READY)
	$(BIN)/pytest -m docs

test-all: test test-docs test-slow

# Other Pythons that this machine has, with the newest releases, and the oldest releases.
test-versions: $(READY)
	$(BIN)/python tests/versions.py

# Compiles for GPUs that this machine need not have; installs a plugin of JAX for that.
test-gpu-compile: $(READY)
	$(BIN)/python tests/gpu.py

# The site loads nothing from the network. The variable silences mkdocs-material's news.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(READY)
	$(BIN)/mkdocs build --strict

docs-serve: $(READY)
	$(BIN)/mkdocs serve

notebooks: $(READY)
	$(BIN)/jupytext --to notebook --execute notebooks/*.py

bench: $(READY)
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

clean:
	rm -rf $(VENV) .venvs .jax_cache results report site
