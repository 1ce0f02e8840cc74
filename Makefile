# Two commands are enough: `make demo` to see it work, `make test` to check that it does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench/bin
BENCH_ACCOUNTING := .venv-bench-accounting/bin
BENCH_TABLES := .venv-bench-tables/bin
BENCH_LEARN := .venv-bench-learn/bin
BENCH_AUDIT := .venv-bench-audit/bin
BENCH_ENGINES := .venv-bench-engines/bin
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt
DEVICE := src/discreet/local/browser

.PHONY: help demo serve test quick shuffle bench audit soak reference contributions browser docs wheel setup-system clean
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## protect a generated table, quote, answer, and verify the receipt
	$(BIN)/discreet demo

serve: $(VENV)/.installed-serve ## a gateway on generated data: HTTP on port 8000, PostgreSQL's protocol on 5433
	$(BIN)/discreet serve --demo --pg-port 5433

test: $(VENV)/.installed-dev ## everything; with ROOM=tables only that room's tests and doctests
ifdef ROOM
	$(PYTEST) tests/$(ROOM) src/discreet/$(ROOM)
else
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config contracts.toml --no-cache
	$(PYTEST)
endif

quick: $(VENV)/.installed-dev ## the loop while working: lint, layers, and the tests that take no time
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --config contracts.toml
	$(PYTEST) -m "not slow and not lengthy"

shuffle: $(VENV)/.installed-dev ## the tests in a random order, which must not matter
	$(PYTEST) --random-order

bench: $(VENV)/.installed-dev .venv-bench/.installed .venv-bench-accounting/.installed .venv-bench-tables/.installed .venv-bench-learn/.installed .venv-bench-audit/.installed .venv-bench-engines/.installed ## speed and tightness beside the peers, each in one run
	$(BENCH)/python benchmarks/noise.py
	$(BENCH_ACCOUNTING)/python benchmarks/accounting.py
	$(BENCH_ACCOUNTING)/python benchmarks/filters.py
	$(BIN)/python benchmarks/ledger.py
	$(BENCH_TABLES)/python benchmarks/tables.py
	$(BENCH_TABLES)/python benchmarks/tables.py --accuracy
	$(BENCH_ENGINES)/python benchmarks/engines.py
	$(BENCH_LEARN)/python benchmarks/learn.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/attacks_linkage.py
	$(BIN)/python benchmarks/attacks_membership.py
	$(BIN)/python benchmarks/one_run.py --peer $(BENCH_AUDIT)/python

audit: $(VENV)/.installed-dev ## the slow statistical checks
	$(PYTEST) -m slow

soak: $(VENV)/.installed-dev ## minutes of questions while files are replaced and disks fill up: nothing lost, nothing grows
	$(BIN)/python benchmarks/soak.py

reference: $(VENV)/.installed-dev ## write docs/reference anew from the docstrings
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_architecture.py
	$(BIN)/python docs/make_benchmarks.py

browser: ## minify the modules for browsers anew, into one (needs npx)
	npx --yes --loglevel=error esbuild@0.25.12 $(DEVICE)/discreet-local.js --bundle --minify --format=esm --log-level=warning \
	  --banner:js="// discreet-local.js and discreet-seal.js, minified; SHA-256 of both: $$(cat $(DEVICE)/discreet-local.js $(DEVICE)/discreet-seal.js | sha256sum | cut -c1-64)" \
	  --outfile=$(DEVICE)/discreet-local.min.js

docs: $(VENV)/.installed-dev ## build the documentation as a site with search: open site/index.html
	$(BIN)/python docs/make_notebooks.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: docs ## build the package into dist/, the documentation inside
	$(BIN)/python -m hatchling build --target wheel

contributions: $(VENV)/.installed-dev ## add a mechanism, an aggregate, an engine and a layer rule to a copy, and count
	$(BIN)/python docs/make_contributions.py

setup-system: ## install what the full suite wants (Debian, root): a JRE, PostgreSQL, Chromium
	sh tests/setup_system.sh

clean: ## remove environments and caches
	rm -rf $(VENV) site .venv-bench .venv-bench-accounting .venv-bench-tables .venv-bench-learn .venv-bench-audit .venv-bench-engines .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) --editable .
	touch $@

$(VENV)/.installed-serve: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) --editable '.[serve]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-serve

.venv-bench/.installed: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/python $(PIP) --editable . -r benchmarks/requirements.txt
	touch $@

.venv-bench-accounting/.installed: pyproject.toml constraints.txt benchmarks/requirements-accounting.txt
	$(PYTHON) -m venv .venv-bench-accounting
	$(BENCH_ACCOUNTING)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BENCH_ACCOUNTING)/python -m pip install --quiet --disable-pip-version-check --editable . -r benchmarks/requirements-accounting.txt
	touch $@

.venv-bench-tables/.installed: pyproject.toml benchmarks/requirements-tables.txt benchmarks/requirements-tables-qrlew.txt
	$(PYTHON) -m venv .venv-bench-tables
	$(BENCH_TABLES)/python -m pip install --quiet --disable-pip-version-check --editable . -r benchmarks/requirements-tables.txt
	$(BENCH_TABLES)/python -m pip install --quiet --disable-pip-version-check --no-deps -r benchmarks/requirements-tables-qrlew.txt
	touch $@

.venv-bench-learn/.installed: pyproject.toml benchmarks/requirements-learn.txt
	$(PYTHON) -m venv .venv-bench-learn
	$(BENCH_LEARN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BENCH_LEARN)/python -m pip install --quiet --disable-pip-version-check --editable . -r benchmarks/requirements-learn.txt
	touch $@

.venv-bench-audit/.installed: benchmarks/requirements-audit.txt
	$(PYTHON) -m venv .venv-bench-audit
	$(BENCH_AUDIT)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements-audit.txt
	touch $@

.venv-bench-engines/.installed: pyproject.toml benchmarks/requirements-engines.txt
	$(PYTHON) -m venv .venv-bench-engines
	$(BENCH_ENGINES)/python -m pip install --quiet --disable-pip-version-check --editable . -r benchmarks/requirements-engines.txt
	touch $@
