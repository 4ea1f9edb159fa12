# What a newcomer types: `make demo` to see it work, `make test` to check it all. Both need Rust, Python >= 3.11 and a
# C compiler, and keep to this folder (.venv, target, dist, demo).

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Every build sees one interpreter, so that none makes cargo start over.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: demo test bare spark bench fuzz docs lint rust python stub fmt clean build install dev tools postgres browser

demo: build install
	$(PIP) install --group demo
	$(BIN)/python examples/first_look.py

# From the quickest to tell to the slowest.
test: tools lint rust python

lint: tools
	cargo fmt --check
	$(BIN)/ruff format --check
	$(BIN)/ruff check

rust: tools
	cargo clippy --all-targets --all-features -- -D warnings
	cargo test --features service

# Types and tests see the installed wheel, as a user has it, not the source tree.
python: tools build install postgres browser
	$(BIN)/python scripts/generate_stub.py --check
	$(BIN)/mypy
	$(BIN)/pyright
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --ignoreexternal --verifytypes chainframe
	@# stubtest has no complaint where there is no stub at all.
	test -s $(BIN)/../lib/python3*/site-packages/chainframe/_native.pyi
	$(BIN)/python -m mypy.stubtest chainframe._native
	$(BIN)/pytest

# For the recipe that needs a real one, where it may be brought along; without it that test says that it was skipped.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq postgresql; } || true

# Likewise for looking at the site as a reader does.
browser:
	@command -v chromium chromium-browser google-chrome chrome >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq chromium; } || true

# The data source in a Spark of two workers on this machine. Spark needs Java and an environment of its own of hundreds of
# megabytes, minutes to bring along, and so is no part of `test`, which tries the source without them.
spark: build
	@command -v java >/dev/null || { echo "make: java was not found; install it, for example: sudo apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	$(PYTHON) -m venv target/spark
	target/spark/bin/python -m pip install --quiet "$$(echo dist/*.whl)[spark]" 'pytest>=9'
	target/spark/bin/python -m pytest tests/python/test_spark.py

# The wheel where nothing else is installed: the tests that need no extra.
bare: build
	$(BIN)/python scripts/test_wheel.py dist

# What it costs beside other ways; brings nginx along where it may.
bench: build install
	$(PIP) install --group bench
	@PATH="$$PATH:/usr/sbin:/sbin"; command -v nginx >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y nginx-light; } || \
		{ echo "make: nginx was not found; install it, for example: sudo apt-get install nginx-light" >&2; exit 1; }
	cargo build --release --manifest-path benches/bare/Cargo.toml --target-dir target/bare
	$(BIN)/python benches/run.py

# Damages answers of fuzz/corpus for as long as it is given, other ones each time: make fuzz SECONDS=600
SECONDS ?= 60
fuzz:
	FUZZ_SECONDS=$(SECONDS) cargo test --profile fuzz --test mutations -- --nocapture

# The site, in target/site.
docs: tools build install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Writes what the stub says of records and calls anew from the declaration.
stub: tools build install
	$(BIN)/python scripts/generate_stub.py
	$(BIN)/ruff format python/chainframe/_native.pyi

fmt: tools
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf .venv dist demo target

build: .venv/pip
	@command -v cargo >/dev/null || { echo "make: cargo was not found; install Rust 1.95 or later" >&2; exit 1; }
	$(PIP) install --group build
	rm -rf dist
	$(BIN)/maturin build --release --out dist --interpreter $(BIN)/python

install: build
	$(PIP) install --force-reinstall --no-deps dist/*.whl
	$(PIP) install "$$(echo dist/*.whl)[all]"

# For work on it: an unoptimised build, seconds after a change; Python files are seen as they are saved.
dev: tools
	$(PIP) install --group build
	$(BIN)/maturin develop

tools: .venv/dev

.venv/dev: .venv/pip
	$(PIP) install --group dev
	@touch $@

# Dependency groups need a pip newer than the one that comes with Python 3.11.
.venv/pip: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later was found; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@
