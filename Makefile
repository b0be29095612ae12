# Two commands for a fresh clone, with Python 3.11 or newer, pip and make and nothing else:
#   make answer   sets up and answers `mla-calc cache --model dsv3`
#   make test     sets up and passes the tests
#
# Everything goes into .venv: a system Python that refuses global installs is left alone. The environment is
# made without a pip of its own and filled by the pip that is there, so that the venv package that some
# distributions split off (ensurepip) is not needed either.

PYTHON ?= python3
VENV := .venv
PIP := $(PYTHON) -m pip --python $(VENV)/bin/python --disable-pip-version-check
# bytecode, as pip writes it for an installed wheel: without it every start compiles the sources anew where
# PYTHONDONTWRITEBYTECODE is set
COMPILE := $(VENV)/bin/python -m compileall -q mla_calc
export PIP_NO_INPUT := 1

.PHONY: answer test clean

answer: $(VENV)/.user
	$(VENV)/bin/mla-calc cache --model dsv3

test: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n auto

$(VENV)/bin/python:
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable .
	$(COMPILE)
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[dev]'
	$(COMPILE)
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
