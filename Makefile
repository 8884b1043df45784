# One place for every command. Each target makes the environment that it needs, in .venv, and no more.
# Its Python is `python3`, or another one that is installed if that is older than 3.11; `make test PYTHON=python3.13`
# names one. Another place, as for a checkout that is read-only:
# `make test VENV=/tmp/env`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How many processes share the tests; one file is run by one of them. A few named ones need no second process.
WORKERS ?= $(if $(ARGS),0,2)
PACKAGES := collectors dstream reducers sources
SOURCES := $(PACKAGES) tests docs
TYPED := $(PACKAGES) $(wildcard tests/typing)
# Compiled tests are kept: to rewrite their assertions takes half of the time in which they are collected.
PYTEST = env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(abspath $(VENV))/byte-code \
	$(BIN)/python -m pytest -q -o cache_dir=$(VENV)/.pytest_cache -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SERVED = $(MAKE) --silent servers || echo "the tests that need this server are skipped"

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test quick smoke pythons check bench soak servers docs clean

help:  ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' Makefile | awk -F '\t' '{printf "make %-7s %s\n", $$1, $$2}'

demo: export DSTREAM_STORAGE ?= build/demo
demo: $(VENV)/.base  ## count words at once, then on Spark, and read them in a second process; PATHS="a.txt b.txt" counts those files
	@$(BIN)/python docs/samples/wordcount.py $(PATHS)
	@$(BIN)/python docs/samples/look_up.py

test: $(VENV)/.test  ## run every test; ARGS="tests/house -k readme" runs some
	@$(SERVED)
	@$(PYTEST) $(ARGS)

quick: $(VENV)/.test  ## run what starts neither Spark nor a program and is not in tests/slow.txt, within three minutes; ARGS as for test
	@$(PYTEST) -p tests.quick --fast -r fE $(ARGS)

smoke: WORKERS := 0
smoke: $(VENV)/.smoke  ## run some hundred tests of all rooms, within a minute or two
	@$(PYTEST) @tests/smoke.txt

pythons:  ## run every test on each Python of 3.11 to 3.14 that is installed, each in an environment .venv-3.x
	@.ci/pythons | { status=0; while read -r version python; do \
		echo "Python $$version"; $(MAKE) --no-print-directory test PYTHON="$$python" VENV="$(VENV)-$$version" < /dev/null || status=1; \
	done; exit $$status; }

check: $(VENV)/.dev $(VENV)/.docs  ## run everything: format, lint, types, imports, docs, package, tests
	@$(BIN)/ruff format --quiet --check $(SOURCES)
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/mypy --no-error-summary $(TYPED)
	@$(BIN)/basedpyright --pythonpath $(BIN)/python > $(VENV)/pyright.log || { cat $(VENV)/pyright.log; exit 1; }
	@$(BIN)/lint-imports --no-logo --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@$(MAKE) --no-print-directory docs
	@$(BIN)/python -m build --no-isolation --outdir build/dist . > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@$(SERVED)
	@$(PYTEST)

bench: $(VENV)/.bench  ## measure; CASE=wordcount measures one case
	@$(BIN)/python -m tests.benchmarks $(CASE)

soak: $(VENV)/.test  ## repeat for hours what tests try a few times; SOAK="mutations hostile" runs some
	@$(BIN)/python -m tests.soak $(SOAK)

servers: $(VENV)/.kafka  ## fetch the servers that tests start, into the environment: Kafka, with Maven
	@:

docs: $(VENV)/.docs  ## build the documentation into build/site
	@$(BIN)/zensical build --strict --clean > $(VENV)/docs.log 2>&1 || { cat $(VENV)/docs.log; exit 1; }

clean:  ## remove everything that a target made, the environment too
	@rm -rf $(VENV) $(VENV)-3.* .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -rf spark-warehouse metastore_db derby.log
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp for each set of packages: made once, made again when the project file changes.

$(VENV)/.made:
	@python=$$(.ci/python "$(PYTHON)") && "$$python" -m venv --clear $(VENV)
	@touch $@

$(VENV)/.base: pyproject.toml | $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.smoke $(VENV)/.test $(VENV)/.dev $(VENV)/.docs $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(VENV)/.made
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(VENV)/.kafka: tests/servers/pom.xml | $(VENV)/.made
	@command -v mvn > /dev/null || { echo "Kafka comes through Maven, and there is no mvn here"; exit 1; }
	@rm -rf $(VENV)/servers/kafka
	@mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory="$$(realpath $(VENV))/servers/kafka" > $(VENV)/kafka.log 2>&1 || { cat $(VENV)/kafka.log; exit 1; }
	@touch $@
