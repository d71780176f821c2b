# Two commands for a fresh machine: `make demo` and `make test`. Python 3.10 or newer, nothing else prepared.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= dev

.PHONY: demo test check format profile benchmarks clean

demo: $(BIN)/.installed
	$(BIN)/assetscore demo

test: $(BIN)/.installed
	$(BIN)/python -m pytest -q

check: $(BIN)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(BIN)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The shipped profile, built again from the shipped references.
profile: $(BIN)/.installed
	$(BIN)/assetscore profile build references/dungeon-tiles --name dungeon-crawl --out calibration/dungeon-crawl

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	touch $@

clean:
	rm -rf $(VENV) demo-report dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
