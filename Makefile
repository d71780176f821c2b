# Two commands for a fresh machine: `make demo` and `make test`. Python 3.10 or newer, nothing else prepared.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test check format profile benchmarks clean

demo: $(BIN)/.installed
	$(BIN)/assetscore demo

test: $(BIN)/.tested
	$(BIN)/python -m pytest -q

check: $(BIN)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(BIN)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The shipped profile, built again from the shipped references.
profile: $(BIN)/.installed
	$(BIN)/assetscore profile build references/dungeon-tiles --name dungeon-crawl --out calibration/dungeon-crawl

$(BIN)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# Every extra that can be installed here; the tests of one that cannot skip and say so.
$(BIN)/.tested: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev,study,notebooks]"
	$(BIN)/python -m pip install --quiet --editable ".[tpips]" || echo "the extra tpips cannot be installed here: its tests skip"
	touch $@

clean:
	rm -rf $(VENV) demo-report dist build .pytest_cache .ruff_cache .mypy_cache .hypothesis
