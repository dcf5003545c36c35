# Every target works in a fresh clone: Python 3.11 or newer, make and git are all it needs.
# Installs come from the hashed locks under .ci/; `make lock` renews them.

BIN := .venv/bin
RUNTIME := .venv/.runtime
DEV := .venv/.dev

.DEFAULT_GOAL := help
.PHONY: help demo test check format-check lint types imports contracts docs-check docs format bench lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(RUNTIME) ## collect, replay and report on sample_traces/, then say where the report is
	@.ci/demo

test: $(DEV) ## the whole test suite, a real browser included
	@.ci/browser
	$(BIN)/pytest -n 2

check: format-check lint types imports contracts docs-check ## formatter, linter, types, import contracts, SQL headers, docs drift

format-check: $(DEV)
	$(BIN)/ruff format --check .

lint: $(DEV)
	$(BIN)/ruff check .

types: $(DEV)
	$(BIN)/mypy $(wildcard tracekit tests benchmarks)
	$(BIN)/mypy .ci/docs.py

# No cache: it remembers an import of a module that was not there yet as one of the root.
imports: $(DEV)
	$(BIN)/lint-imports --no-logo --no-cache

contracts: $(DEV) ## house sizes, SQL headers, locks, layout, changelog
	$(BIN)/pytest tests/conformance

docs-check: $(DEV)
	$(BIN)/python .ci/docs.py --check

docs: $(DEV) ## write the generated parts of README, CONTRIBUTING and queries/README
	$(BIN)/python .ci/docs.py

format: $(DEV) ## format the code and repair what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) ## the benchmarks, as ratios beside their peers
	@$(BIN)/python -m benchmarks.run

lock: $(DEV) ## renew the hashed locks from pyproject.toml
	@.ci/lock

clean: ## remove the environment and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

$(RUNTIME): .ci/requirements.txt .ci/venv pyproject.toml
	@.ci/venv .ci/requirements.txt
	@touch $@

$(DEV): .ci/requirements-dev.txt .ci/venv pyproject.toml
	@.ci/venv .ci/requirements-dev.txt
	@touch $@ $(RUNTIME)
