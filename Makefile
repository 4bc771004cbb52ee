# Two commands do everything: `make demo` and `make test`. Each makes .venv first if it is missing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.installed-for-users
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= 2
FUZZ_SECONDS ?= 300
FUZZ_SEED ?= 0
NATIVE := setup.py $(wildcard src/edhnn/kernels/native/*.cpp src/edhnn/kernels/native/*.h)

.PHONY: help install demo test test-slow fuzz sanitize check format bench evidence coverage docs dist clean

help:            ## show this list
	@grep -E '^[a-z-]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

install: $(STAMP)  ## make .venv and install edhnn with its development tools

$(READY): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) --editable .
	@$(BIN)/edhnn --version
	@touch $(READY)

$(STAMP): $(READY)
	$(PIP) 'edhnn[dev]'  # installed above: this adds the tools and does not compile the kernels again
	@touch $(STAMP)

demo: $(READY)   ## a hypergraph examined; floors, an MLP and ED-HNN on it; report in demo/
	@mkdir -p demo
	$(BIN)/edhnn data convert csbm-4 demo/csbm-4.hif.json.gz --force
	$(BIN)/edhnn data doctor demo/csbm-4.hif.json.gz --picture demo/csbm-4.png
	$(BIN)/python examples/demo.py demo
	@echo "Written: demo/csbm-4.png (a picture of the hypergraph) and demo/ed-hnn/report.html (the run on one page)."
	@echo "Your own: $(BIN)/edhnn data doctor memberships.csv, then $(BIN)/edhnn train memberships.csv --label COLUMN"

test: $(STAMP)   ## the everyday test suite
	$(BIN)/python -m pytest -n $(WORKERS)

test-slow: $(STAMP)  ## the heavier tests too, with all examples of Hypothesis
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) -m "slow or not slow"

fuzz: $(STAMP)   ## broken files, folders and command lines for FUZZ_SECONDS; the inputs found are in build/fuzz
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

sanitize:        ## the native kernels under the address and undefined-behaviour sanitizers
	@mkdir -p build/sanitize
	$(CXX) -std=c++17 -O0 -g1 -Wall -Wextra -Werror -fopenmp -ffp-contract=off -fno-omit-frame-pointer \
		-fsanitize=address,undefined -fno-sanitize-recover=all tests/native/harness.cpp -o build/sanitize/harness
	build/sanitize/harness

check: $(STAMP)  ## format, lint, types, layers, no private module with one importer
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/structure.py --check

format: $(STAMP) ## format, and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## time and memory beside pandas, json, the textbook's ED-HNN and torch_geometric; about 40 minutes
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/hypergraph_conv.py

evidence: $(STAMP)  ## the tables and figures of docs/evidence, from the records in results/
	$(BIN)/edhnn report --out docs/evidence

coverage: $(STAMP)  ## the everyday suite with coverage by room, commands and workers included
	$(BIN)/python -m pytest -n $(WORKERS) --cov=edhnn --cov-report=
	$(BIN)/python benchmarks/coverage_by_room.py

dist: $(STAMP)   ## sdist and wheel in dist/, the wheel tried in a clean environment without a compiler
	rm -rf dist
	$(BIN)/python -m build --installer pip --outdir dist .
	$(PYTHON) benchmarks/try_wheel.py dist

docs: $(READY)   ## the documentation site, in docs/_build/html; fails on a warning
	$(PIP) 'edhnn[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -d docs/_build/doctrees docs docs/_build/html
	@echo "Written: docs/_build/html/index.html"

clean:           ## remove .venv and what the commands made
	rm -rf $(VENV) demo build dist docs/_build docs/jupyter_execute
