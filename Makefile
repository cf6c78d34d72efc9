# Two commands: `make demo` and `make test`. Both make the environment they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean redis

demo: redis .venv/core
	$(BIN)/crisis demo $(ARGS)

test: .venv/test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest $(ARGS)

# Told before the long install: the demo's Redis is this machine's, or the one in a wheel, which there is for these.
redis:
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || case "$$(uname -s) $$(uname -m)" in \
	"Linux x86_64"|"Linux aarch64"|"Darwin x86_64"|"Darwin arm64") ;; \
	*) echo "The demo needs a Redis server, and there is no ready-made one for $$(uname -s) $$(uname -m): install redis-server or valkey-server, then make demo again."; exit 1;; esac

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
