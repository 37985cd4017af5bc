# Everything a contributor types. Each target sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN = $(BIN)/python
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help quick test processes servers browser nightly frameworks oldest conformance thorough coverage demo bench volume lint types mypy pyright check format reference frozen docs package clean

help: ## list what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

quick: $(VENV)/tests-ready ## the tests that need no killed process, server or framework: a minute
	HOLDFAST_QUICK=1 $(BIN)/python -m pytest -n 2 -q -r fE

# In memory the tests do not wait for a disk; `make thorough` uses the disk.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR > 1 && $$4 > 4000000 {print "/dev/shm"}')
APART := processes servers browser
quick test $(APART) coverage framework-% oldest-%: export TMPDIR := $(or $(IN_MEMORY),$(TMPDIR))
# Without compiled files every program that a test starts is compiled again.
quick test $(APART) coverage framework-% oldest-%: export PYTHONDONTWRITEBYTECODE :=
TESTS := -m pytest -n 3 --dist worksteal -q

test: $(VENV)/ready ## the tests to run after every change, with some of each kind below
	$(RUN) $(TESTS) -m "smoke or not (processes or servers or browser)"

processes: $(VENV)/ready ## tests that start processes, kill them and break their disk
servers: $(VENV)/ready ## tests of PostgreSQL: under load, with faults, every rule of a store
browser: $(VENV)/ready ## tests of the viewer in Chromium
$(APART):
	$(RUN) $(TESTS) -m $@

# Each framework with versions of its own has an environment of its own, `.venv-<name>`.
FRAMEWORKS := $(patsubst tests/adapters/%/requirements.txt,%,$(wildcard tests/adapters/*/requirements.txt))
frameworks: $(FRAMEWORKS:%=framework-%) ## run the adapters' tests on their frameworks; one: make framework-strands
oldest: $(FRAMEWORKS:%=oldest-%) ## likewise on the oldest versions that are supported

# pyproject.toml leaves the adapters out, also for a checker that is started with their names.
STRICTLY = {"include": ["../src/holdfast/adapters/$*"], "typeCheckingMode": "strict", "pythonVersion": "3.12", "extraPaths": ["../src"]}
framework-%: .venv-%/ready
	HOLDFAST_FRAMEWORK=$* .venv-$*/bin/python -m pytest -q -n 0 tests/adapters/$*
	test ! -d src/holdfast/adapters/$* || .venv-$*/bin/python -m mypy --cache-dir .mypy_cache/$* src/holdfast/adapters/$*/*.py
	test ! -d src/holdfast/adapters/$* || { echo '$(STRICTLY)' > .venv-$*/pyright.json && \
		.venv-$*/bin/python -m pyright -p .venv-$*/pyright.json --pythonpath .venv-$*/bin/python; }

oldest-%: .venv-%-oldest/ready
	HOLDFAST_FRAMEWORK=$* .venv-$*-oldest/bin/python -m pytest -q -n 0 tests/adapters/$*

conformance: $(VENV)/ready ## the rules of a store on your server: HOLDFAST_TEST_POSTGRES=postgresql://…
	$(BIN)/python -m pytest -n 2 -q tests/backends/postgres/test_postgres_conformance.py

thorough: $(VENV)/ready oldest ## every combination of call, place and breakdown, and servers that fail
	HOLDFAST_THOROUGH=1 HOLDFAST_CRASH_ROUNDS=1000 HOLDFAST_BITROT_FLIPS=1000 \
		$(BIN)/python -m pytest -n 3 -q
	$(BIN)/python -m pytest -q --override-ini addopts= --override-ini timeout=900 tests/thorough

INNER := $(addprefix tests/,adapters api archive conformance earlier_systems engine importers keys messages port \
	telemetry tools values workspace backends/sqlite backends/postgres/test_postgres_conformance.py)
coverage: $(VENV)/ready ## count the branches that the tests of the inner layers take; fails below the floor
	$(BIN)/coverage erase
	$(BIN)/coverage run $(TESTS) $(INNER)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet --include='src/*' -o .coverage.json
	$(BIN)/python tests/project/coverage_floor.py .coverage.json

demo: $(or $(wildcard $(VENV)/run-ready),.venv-demo/ready) ## watch an agent being killed and resumed
	$(<D)/bin/python demo/run.py

bench: $(VENV)/bench-ready $(FRAMEWORKS:%=.venv-%/ready) ## measure against the peers, print the table
	.venv-pydantic_ai/bin/python -m pip install $(AS_PINNED) -r benchmarks/frameworks/pydantic_ai.txt
	$(BIN)/python -m benchmarks

volume: $(VENV)/bench-ready ## build stores of a million threads, measure what grows: an hour
	$(BIN)/python -m benchmarks volume

lint: $(VENV)/tests-ready ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: mypy pyright ## check the types of the source, strictly, and of the tests

mypy: $(VENV)/ready
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini

pyright: $(VENV)/ready
	$(BIN)/pyright

check: lint types test $(APART) ## what the continuous integration runs, without packages and frameworks

# Other Pythons that are here: on the path, or pyenv's.
nightly: coverage ## what the continuous integration leaves out: coverage, and the quick tests on other Pythons
	.ci/pythons

format: $(VENV)/tests-ready ## repair style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(VENV)/tests-ready ## write docs/cli.md and docs/api.md from the code
	$(BIN)/python -m holdfast.cli._reference docs/cli.md
	$(BIN)/python docs/reference.py docs/api.md

frozen: $(VENV)/ready ## write tests/frozen from the code: public names, and the schemas of all JSON
	WRITE_FROZEN=1 $(RUN) -m pytest -q -n 0 tests/frozen

# The site needs nothing of the network, neither to be made nor to be read.
docs: .venv-docs/ready ## make the site in build/site, and look for dead links
	rm -rf build/site
	.venv-docs/bin/sphinx-build --quiet --fail-on-warning --keep-going --jobs=2 --doctree-dir=build/doctrees docs build/site
	.venv-docs/bin/python docs/check_site.py build/site

package: $(VENV)/run-ready .venv-docs/ready ## make the wheel and the source archive in dist, and check them
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	.venv-docs/bin/twine check --strict dist/*

clean: ## remove what was set up and built
	rm -rf $(VENV) $(VENV)-* build dist .coverage*

# Holdfast and what it needs to run; each further marker adds packages to the same place.
$(VENV)/run-ready: requirements-run.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -r requirements-run.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

# As little as the demo needs: no pip of its own if Python has one, no build, no install.
NEEDED := apsw click msgspec orjson pathspec xxhash
QUIETLY := install --quiet --disable-pip-version-check --no-compile --constraint requirements-run.txt $(NEEDED)
.venv-demo/ready: requirements-run.txt
	$(PYTHON) -m venv --without-pip $(@D)
	$(PYTHON) -m pip --python $(@D)/bin/python $(QUIETLY) || \
		{ $(PYTHON) -m venv $(@D) && $(@D)/bin/python -m pip $(QUIETLY); }
	echo "$(CURDIR)/src" > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/holdfast.pth"
	touch $@

$(VENV)/tests-ready: $(VENV)/run-ready requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	touch $@

$(VENV)/ready: $(VENV)/tests-ready requirements-adapters.txt
	$(INSTALL) -r requirements-adapters.txt
	touch $@

$(VENV)/bench-ready: $(VENV)/ready requirements-bench.txt
	$(INSTALL) -r requirements-bench.txt
	touch $@

.venv-docs/ready: requirements-docs.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# What the tests of all adapters run with, once.
TOOLS := .venv-frameworks
$(TOOLS)/ready: requirements-run.txt requirements-frameworks.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install $(AS_PINNED) -r requirements-run.txt -r requirements-frameworks.txt
	$(@D)/bin/python -m pip install $(AS_PINNED) --no-build-isolation --editable .
	touch $@

# One framework, in front of those tools. Its file lists all that it needs, so nothing has
# to be resolved, only checked; and of a large framework little is imported and compiled.
AS_PINNED := --quiet --disable-pip-version-check --no-deps --no-compile
BESIDE_TOOLS = "import site; print('import site; site.addsitedir(%r)' % site.getsitepackages()[0])"
SITE = "import site; print(site.getsitepackages()[0])"
WITH = $(PYTHON) -m venv --clear --without-pip $(@D) && \
	$(TOOLS)/bin/python -c $(BESIDE_TOOLS) > "$$($(@D)/bin/python -c $(SITE))/tools.pth" && \
	$(@D)/bin/python -m pip install $(AS_PINNED) -r $(word 2,$^) && \
	$(@D)/bin/python -m pip check --disable-pip-version-check

# Make would remove them as steps between two others, and install all of it again.
.PRECIOUS: .venv-%-oldest/ready .venv-%/ready
.venv-%-oldest/ready: $(TOOLS)/ready tests/adapters/%/oldest.txt
	$(WITH)
	touch $@

.venv-%/ready: $(TOOLS)/ready tests/adapters/%/requirements.txt
	$(WITH)
	touch $@
