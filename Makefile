# Every target builds .venv itself; it needs only Python >= 3.11, pip and make.
#   PYTHON=python3.12 make test    chooses the interpreter of a new .venv
#   JOBS=8 make test               runs more tests side by side

BIN := .venv/bin
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
export PYTHON
# Without compiled files each process that a test starts compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-clients test-slow test-all flaky attacks check lint format docs bench bench-learning lock sbom dev clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1	/p' Makefile | expand -t 20

demo: .venv/.base  ## the tour in the terminal, then the console
	$(BIN)/sulq demo

test: .venv/.test  ## all tests but the slow ones
	$(PYTEST) -m "not slow"

test-clients: .venv/.test  ## the slow tests that drive real clients and a browser, after `make test`
	$(PYTEST) -m slow tests/server/postgres/test_clients.py tests/browser

test-slow: .venv/.test  ## the slow faults and attacks, and Spark, after `make test`
	$(PYTEST) -m slow tests/faults tests/attacks tests/kernel/engines/test_spark.py

test-all: .venv/.dev  ## every test, every extra, new random examples
	$(PYTEST) --hypothesis-profile=explore

flaky: .venv/.dev  ## which tests hang on chance: stretched noise, then 300 fresh runs of those that come near
	$(BIN)/python scripts/flaky

check: lint      ## the gate: lint, types, house rules, fast tests
	$(PYTEST) -m "not slow and not faults"

lint: .venv/.test  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.test  ## rewrite code and templates in the house format, and the list of modules
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python scripts/modules.py
	$(BIN)/python scripts/templates.py

docs: .venv/.docs  ## the documents as a site in build/site, with search
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

attacks: .venv/.dev  ## 10^5 neighbours replayed, planted faults, audits; writes docs/threats.md (1 hour)
	$(BIN)/python -m tests.replay --anew
	$(BIN)/python -m tests.replay.report

bench: .venv/.dev  ## engines, peers, kernels, replicas; writes docs/benchmarks.md (40 minutes)
	$(BIN)/python -m benchmarks

bench-learning: .venv/.test  ## the learners against diffprivlib; writes docs/benchmarks-learning.md
	scripts/peer_venv
	$(BIN)/python -m benchmarks.learning

lock:            ## write deploy/requirements.lock: the packages of the server image, with hashes
	scripts/lock

sbom:            ## write build/sbom.cdx.json: the packages of the server image as CycloneDX
	scripts/lock --sbom

dev: .venv/.dev  ## .venv with every extra

clean:           ## remove .venv, caches and build products
	rm -rf .venv .venv-peers .venv-lock build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .sulq-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A larger set includes the smaller ones, and scripts/venv marks those as built too.
.venv/.base .venv/.test .venv/.dev .venv/.docs: pyproject.toml scripts/venv scripts/uv_settings.py
	@scripts/venv $(patsubst .%,%,$(notdir $@))
