# make demo     push a generated capture through the whole chain and print the table
# make test     the whole test suite, fast tests first
# make lint     ruff and mypy
# make bitstream BOARD=versa_ecp5   a board's bitstream and report in build/BOARD (long);
#                                   MODE=inline passes frames from port to port, SEEDS='4 5 6'
# make docs     the pages under docs/ as a site in build/docs, warnings are errors
# make bench    speed of the simulated board, line rate, area and clock: hours
# make prove    the proofs of the gateware, deeper than `make test` looks
# make fuzz     decoder, collector, link and capture reader, FUZZ_SECONDS each
# make lock     refresh requirements.lock (needs uv)
# make clean    remove .venv and everything built
#
# All paths are relative, so that a clone may lie in a folder with spaces in its name.

PYTHON ?= python3
UV ?= uv
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# They would redirect the interpreter of .venv, and the one that cocotb embeds.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV

VENV := .venv/bin/python
PIP := $(VENV) -m pip --disable-pip-version-check --no-input

.PHONY: help demo test bitstream lint docs bench prove fuzz lock clean check-python check-tools FORCE

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: check-tools .venv/.installed
	@.venv/bin/rocetap demo

test: check-tools .venv/.installed
	@$(VENV) -m pytest

BOARD ?=
MODE ?= tap
SEEDS ?= 1 2 3
bitstream: check-python .venv/.installed
	@$(VENV) -m rocetap_boards "$(BOARD)" --mode "$(MODE)" --seeds $(SEEDS)

lint: .venv/.installed
	@$(VENV) -m ruff check .
	@$(VENV) -m mypy

docs: .venv/.installed
	@$(VENV) -m mkdocs build --quiet

bench: check-tools .venv/.installed
	@$(VENV) -m rocetap_sim.bench
	@.venv/bin/rocetap bench gateware

prove: .venv/.installed
	@ROCETAP_PROVE=1 $(VENV) -m pytest tests/formal

FUZZ_SECONDS ?= 60
fuzz: .venv/.installed
	@for target in decoder collector link capture; do \
	    $(VENV) tests/fuzz/run.py $$target $(FUZZ_SECONDS) || exit 1; done

# Names, versions and hashes only: no address of any index.
lock: check-python
	@command -v $(UV) >/dev/null || { echo "make lock: $(UV) not found; install uv, or give UV=PATH" >&2; exit 1; }
	@{ "$(PYTHON)" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'; \
	   echo editables; } | $(UV) pip compile --quiet --upgrade --universal \
	    --python-version 3.11 --all-extras --generate-hashes --no-emit-index-url \
	    --no-emit-find-links --no-header --no-annotate --output-file requirements.lock \
	    pyproject.toml -
	@! grep -n '://' requirements.lock

clean:
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

check-python:
	@command -v "$(PYTHON)" >/dev/null || { \
	    echo "rocetap needs Python 3.11 or newer: $(PYTHON) not found; install python3, or give PYTHON=PATH" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "rocetap needs Python 3.11 or newer: $(PYTHON) is $$("$(PYTHON)" -c 'import platform; print(platform.python_version())'); give another as PYTHON=PATH" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "$(PYTHON) lacks the venv module: apt-get install python3-venv" >&2; exit 1; }

check-tools: check-python
	@command -v "$${CXX:-g++}" >/dev/null || { \
	    echo "$${CXX:-g++} not found, the simulated board is compiled with it: apt-get install g++" >&2; exit 1; }

# A virtual environment knows its absolute path: in a folder that was moved or copied it is remade.
ifneq ($(file <.venv/.locked),$(CURDIR))
.venv/.locked: FORCE
endif

.venv/.locked: requirements.lock | check-python
	@echo "rocetap: making .venv with $$("$(PYTHON)" --version)" >&2
	@rm -rf .venv && "$(PYTHON)" -m venv .venv
	@echo "rocetap: installing the packages pinned in requirements.lock" >&2
	@$(PIP) install --require-hashes --requirement requirements.lock \
	    | sed -un -e 's/^Collecting \([^ ]*\).*/  \1/p' \
	        -e 's/^Installing collected packages.*/  all are here; unpacking them takes about a minute/p' >&2
	@printf '%s\n' "$(CURDIR)" > .venv/.locked

.venv/.installed: .venv/.locked pyproject.toml
	@echo "rocetap: installing rocetap itself" >&2
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch .venv/.installed
