# Two commands: `make demo` and `make test`. Both make the environment they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/core
	$(BIN)/crisis demo $(ARGS)

test: .venv/test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest $(ARGS)

.venv/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@touch $@

.venv/core: .venv/uv pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable .
	@touch $@

.venv/test: .venv/uv pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[test]'
	@touch $@ .venv/core

clean:
	rm -rf .venv build *.egg-info
