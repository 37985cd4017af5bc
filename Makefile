# Everything a contributor types. Each target sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test thorough demo bench lint types mypy pyright check format reference clean

test: $(VENV)/ready ## run all tests
	$(BIN)/python -m pytest -n 3 -q

thorough: $(VENV)/ready ## every combination of call, place and breakdown, and servers that fail
	HOLDFAST_THOROUGH=1 HOLDFAST_CRASH_ROUNDS=1000 HOLDFAST_BITROT_FLIPS=1000 \
		$(BIN)/python -m pytest -n 3 -q
	$(BIN)/python -m pytest -q --override-ini addopts= tests/thorough

demo: $(VENV)/ready ## watch an agent being killed and resumed
	$(BIN)/python demo/run.py

bench: $(VENV)/bench-ready ## measure against the peers, print the table
	$(BIN)/python benchmarks/run.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: mypy pyright

mypy: $(VENV)/ready
	$(BIN)/mypy

pyright: $(VENV)/ready
	$(BIN)/pyright

check: lint types test ## what the continuous integration runs

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/ready ## write the commands' help into docs/cli.md
	$(BIN)/python -m holdfast.cli._reference docs/cli.md

clean:
	rm -rf $(VENV) build dist

$(VENV)/ready: requirements-dev.txt requirements-adapters.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -r requirements-adapters.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/bench-ready: $(VENV)/ready requirements-bench.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.txt
	touch $@
