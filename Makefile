# Two commands: `make demo` and `make test`. Both make the environment they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin
# Where this is set, every process compiles anew all that it imports: a worker's start cost 4.4 s of CPU, and costs 1.9.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test bench chaos audit digests clean redis

demo: redis .venv/core
	$(BIN)/crisis demo $(ARGS)

# Three processes on two cores, a file at a time: while one waits two compute (`spread` in tests/conftest.py).
# mypy is one of the tests.
test: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(ARGS)

# What a post costs, beside the run that is kept; fails where it grew. Real posts where CRISIS_DATA holds streams.
bench: .venv/core
	$(BIN)/crisis bench --out deploy/bench.json $(ARGS)

# Every fault on Apache Kafka and Redis, about 25 minutes; ARGS="frozen" runs those with that word and keeps the others.
chaos: .venv/test
	$(BIN)/python -m tests.chaos $(ARGS)

# Known vulnerabilities of every package in uv.lock, extras and all, by OSV's database (https://osv.dev, which has PyPI's
# advisories). Fails where there are some, and where it cannot be asked: no answer is no good news.
audit: .venv/uv
	$(BIN)/uv audit --frozen --preview-features audit-command $(ARGS)

# The images of others by digest, as their registry has them now: look at the difference before you commit it.
digests: .venv/core
	$(BIN)/python deploy/digests.py

# Told before the long install: the demo's Redis is this machine's, or the one in a wheel, which there is for these.
redis:
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || case "$$(uname -s) $$(uname -m)" in \
	"Linux x86_64"|"Linux aarch64"|"Darwin x86_64"|"Darwin arm64") ;; \
	*) echo "The demo needs a Redis server, and there is no ready-made one for $$(uname -s) $$(uname -m): install redis-server or valkey-server, then make demo again."; exit 1;; esac

# What is installed is what uv.lock names, by its hash, from whichever index; after a change of pyproject.toml: uv lock.
define install
	@$(BIN)/uv export --quiet --frozen --no-emit-project $(1) --output-file .venv/locked.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement .venv/locked.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
endef

.venv/uv: deploy/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement deploy/uv.txt
	@touch $@

.venv/core: .venv/uv pyproject.toml uv.lock
	$(call install,--extra demo)
	@touch $@

.venv/test: .venv/uv pyproject.toml uv.lock
	$(call install,--extra test)
	@touch $@ .venv/core

clean:
	rm -rf .venv build *.egg-info
