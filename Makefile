# Every target sets up what it needs. Works with GNU make 3.81 (macOS) and later.

.DEFAULT_GOAL := help
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
# Compiling every package costs half a minute; what gets imported is compiled then.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
COMPILE := uv pip compile pyproject.toml --extra pipelines --extra api --extra mcp --extra code --extra langgraph \
	--extra dask --extra claude --extra openai --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --quiet
# Four processes, three on a single core, each with a PostgreSQL of its own: many tests wait, a third of the time, which
# four fill on two cores. Those that need no server wait for nothing.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
BESIDE := -n $(shell test $(CORES) -gt 1 && echo 4 || echo 3) --dist loadfile --no-loadscope-reorder
EACH_CORE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# Empty is unset to Python: without compiled modules each program that a test starts takes a second or two longer.
export PYTHONDONTWRITEBYTECODE :=
# Newest last: wheels for a new Python arrive late.
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3 python

.PHONY: help demo test unit check docs site bench faults dev down lock sbom audit wheel drills clean

help:
	@echo "make demo    90 days of an agent's memory, then a night over it    FROM=FILE.jsonl for your own"
	@echo "make dev     PostgreSQL, the Dagster UI, the REST API and the console over your memories"
	@echo "make down    stop what the demo started"
	@echo "make test    all tests"
	@echo "make unit    those that need no server, in seconds"
	@echo "make check   lint, format, types, import contracts, house rules"
	@echo "make docs    write docs/reference/ anew, from the code"
	@echo "make bench   one measurement    NAME=dedup DATA=DIR JSON=FILE; NAME=all: every one, kept"
	@echo "make faults  kills, races and foreign queries for an hour    ARGS=--quick for a minute; JSON=FILE"
	@echo "make lock    pin what pyproject.toml newly asks for    ARGS=--upgrade for all"
	@echo "make sbom    the bill of materials of requirements.lock, as CycloneDX, into dist/"
	@echo "make audit   known vulnerabilities of requirements.lock; asks OSV, so it needs the network"
	@echo "make wheel   the wheel of the last commit, the same bytes everywhere, into dist/"
	@echo "make drills  restore and upgrade filled stores in every way docs/operating.md names; build the wheel twice"
	@echo "make clean   remove the environment and build files; memories stay"

demo: $(VENV)/installed
	@$(BIN)/nous demo $(if $(FROM),--from "$(FROM)")

dev: $(VENV)/installed
	@$(BIN)/nous dev

down:
	@if [ -x $(BIN)/nous ]; then $(BIN)/nous down --demo; else echo "nothing is installed here, so nothing runs"; fi

test: $(VENV)/installed
	@$(BIN)/pytest $(BESIDE) $(ARGS)

unit: $(VENV)/installed
	@$(BIN)/pytest -m "not integration" $(EACH_CORE) $(ARGS)

check: $(VENV)/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports
	@$(BIN)/pytest tests/house/test_house.py

docs: $(VENV)/installed
	@$(BIN)/python -m docs.generate
	@$(BIN)/python -m clients.generate

site: $(VENV)/installed
	@$(BIN)/python -m docs.site $(ARGS)

bench: $(VENV)/installed-bench
	@$(BIN)/python -m benchmarks $(NAME) $(if $(DATA),--data "$(DATA)") $(if $(JSON),--json "$(JSON)") $(ARGS)

faults: $(VENV)/installed
	@$(BIN)/python -m benchmarks faults $(if $(JSON),--json "$(JSON)") $(ARGS)

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv: python3 -m pip install uv" >&2; exit 1; }
	@$(COMPILE) --output-file requirements.lock $(ARGS)
	@$(COMPILE) --extra dev --extra docs --constraint requirements.lock --output-file requirements-dev.lock $(ARGS)
	@$(COMPILE) --extra dev --extra docs --extra bench --constraint requirements-dev.lock --output-file requirements-bench.lock

sbom: $(VENV)/installed
	@$(BIN)/python -m release sbom $(ARGS)

# Make itself ends with 2 whatever a command ends with; `python -m release audit` tells 1 (vulnerable) from 3 (not audited).
audit: $(VENV)/installed
	@$(BIN)/python -m release audit $(ARGS)

wheel: $(VENV)/installed
	@$(BIN)/python -m release wheel $(ARGS)

drills: $(VENV)/installed
	@NOUS_DRILLS=1 $(BIN)/pytest tests/online/interfaces/test_restore_drills.py tests/house/test_release.py --durations=10 $(ARGS)

clean:
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# --- the environment: a stamp each, so that the second time is instant and a changed lock installs anew ---

$(VENV)/installed: requirements-dev.lock pyproject.toml setup.py | $(VENV)/made
	@echo "Installing what requirements-dev.lock names into $(VENV); the first time takes a minute or two ..."
	@$(PIP) install --no-compile --no-deps --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-bench: requirements-bench.lock $(VENV)/installed
	@echo "Installing the peers to measure against ..."
	@$(PIP) install --no-compile --no-deps --require-hashes -r requirements-bench.lock
	@touch $@

# An environment that works is kept; one of another Python, or half made, is made again.
$(VENV)/made:
	@usable='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))'; \
	if ! { $(BIN)/python -c "$$usable" && $(BIN)/python -m pip --version; } >/dev/null 2>&1; then \
		for python in $(PYTHONS); do \
			if "$$python" -c "$$usable" >/dev/null 2>&1; then found=$$python; break; fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo "Nous needs Python 3.11, 3.12, 3.13 or 3.14 with venv (on Debian and Ubuntu: apt install python3-venv);" >&2; \
			echo "none was found on PATH. If it is elsewhere: make PYTHON=/path/to/python ..." >&2; \
			exit 1; \
		fi; \
		"$$found" -m venv --clear $(VENV) || exit 1; \
	fi; \
	touch $@
