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
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
