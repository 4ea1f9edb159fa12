# `make demo` runs an example, `make test` all checks. Both need Rust, Python >= 3.11 and a C compiler, and write to this
# folder only (.venv, target, dist, demo).

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Of twenty thousand installed files few are imported: Python compiles those, once.
PIP_INSTALL := $(PIP) install --no-compile
export PYTHONDONTWRITEBYTECODE :=
# One interpreter for every build, so that cargo does not rebuild.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.PHONY: help targets cross offline lowest mutants mutation-package enumerate reproducible simulate demo demo-packages test bare spark bench fuzz docs lint rust python check-python types pytest stub fmt clean build install dev tools postgres browser

# Packages are installed during the build, when a core has nothing else to do.
demo: .venv/pip
	$(MAKE) --no-print-directory --jobs=2 install PACKAGES=demo-packages PROFILE=demo
	$(BIN)/python examples/first_look.py

demo-packages: .venv/pip
	packages=$$($(BIN)/python scripts/extra_requirements.py all) && nice $(PIP_INSTALL) --group demo $$packages

# The Rust checks begin while Python's tools are downloaded; then they and the build of the wheel use the two cores in turn, as
# do types and tests, which wait now and then.
# Clippy lints this crate while it is compiled for the tests and for the wheel; a run of its own would check all dependencies
# again. `cargo clippy` hands over its arguments in the same variables.
test: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
test: export CLIPPY_ARGS := -Dwarnings
test: .venv/pip
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target rust lint postgres browser install PROFILE=dev
	$(MAKE) --no-print-directory check-python

# Prints the targets with their purpose, from the table for contributors.
help:
	@sed -n 's/^| `make \([a-z]*\)` | \(.*\) |$$/\1	\2/p' CONTRIBUTING.md | expand -t 14

lint: tools
	cargo fmt --check
	$(BIN)/python scripts/check_prose.py
	$(BIN)/ruff format --check
	$(BIN)/ruff check

rust: .venv/pip
	$(if $(RUSTC_WORKSPACE_WRAPPER),,cargo clippy --all-targets --all-features -- -D warnings)
	cargo test --features service,planted-bugs,events
	$(MAKE) --no-print-directory mutation-package
	@# Licenses, bans and sources need no network; a workflow installs cargo-deny and checks advisories as well.
	! command -v cargo-deny >/dev/null || cargo-deny --offline --locked --all-features check licenses bans sources

python: PROFILE := dev
python: tools install postgres browser
	$(MAKE) --no-print-directory check-python

# Tests wait for servers and child processes as long as they compute.
WORKERS ?= $$($(BIN)/python -c 'import os; print(2 * (os.cpu_count() or 1))')
# Type checks and tests use the installed wheel, not the source tree.
check-python:
	$(MAKE) --no-print-directory --jobs=2 types pytest

types:
	$(BIN)/python scripts/generate_stub.py --check
	$(BIN)/python scripts/guide_modules.py target/guide
	$(BIN)/mypy
	$(BIN)/mypy target/guide
	$(BIN)/pyright
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pyright --ignoreexternal --verifytypes chainframe
	@# stubtest succeeds if there is no stub at all.
	test -s $(BIN)/../lib/python3*/site-packages/chainframe/_native.pyi
	$(BIN)/python -m mypy.stubtest --mypy-config-file scripts/stubtest.ini chainframe._native

# Begins with the modules compiled: otherwise each worker compiles all that the tests import, which takes two thirds of the
# time until the first test.
# A worker that has ended takes tests of the others: without that, the last one ran two hundred tests alone.
pytest:
	@$(BIN)/pytest --collect-only --quiet --quiet > /dev/null || true
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

# Installs PostgreSQL for the test of its recipe, if allowed; otherwise that test is skipped.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends postgresql; } || true

# Installs a browser for the tests of the site, if allowed; otherwise they are skipped.
browser:
	@command -v chromium chromium-browser google-chrome chrome >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium chromium-sandbox fonts-liberation; } || true

# Tests the data source in a local Spark cluster of two workers, on Linux. Not part of `test`: Spark needs Java, its own
# environment of hundreds of megabytes and minutes to install. `test` covers the data source without Spark.
spark: build
	@command -v java >/dev/null || { echo "make: java was not found; install it, for example: sudo apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	$(PYTHON) -m venv target/spark
	@# Without force, pip keeps the wheel of an earlier run, whose version is the same.
	target/spark/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	target/spark/bin/python -m pip install --quiet "$$(echo dist/*.whl)[spark]" 'pytest>=9'
	target/spark/bin/python -m pytest tests/python/integrations/test_spark*.py

# Tests the wheel in an empty environment, without the tests that need an extra.
bare: build
	$(BIN)/python scripts/test_wheel.py dist

# Tests the wheel with the lowest versions of the optional libraries, in an environment of its own.
lowest: build
	$(BIN)/python scripts/test_lowest.py dist

# Checks the code for Windows and macOS, as far as their standard libraries tell; their wheels are built by a workflow.
targets:
	$(PYTHON) scripts/check_targets.py

# Builds wheels for other kinds of Linux, with zig as C compiler and linker, and checks the symbols that they need.
CROSS ?= x86_64-unknown-linux-musl:musllinux_1_2 aarch64-unknown-linux-gnu:manylinux_2_28
cross: .venv/pip
	$(PIP_INSTALL) --group cross
	rustup target add $(foreach each,$(CROSS),$(firstword $(subst :, ,$(each))))
	set -e; for each in $(CROSS); do \
		PATH=$(abspath $(BIN)):$$PATH maturin build --zig --profile dev --out target/cross \
			--target $${each%%:*} --compatibility $${each##*:}; \
	done

# Makes a source distribution with all crates, for the builds without a network in scripts/packaging/.
offline: .venv/pip
	$(PIP_INSTALL) --group build
	$(BIN)/python scripts/vendored_sdist.py dist

# Builds the wheel in two directories and compares the bytes.
reproducible: .venv/pip
	$(PIP_INSTALL) --group build
	$(BIN)/python scripts/compare_builds.py

# Compares the cost with other clients; installs nginx if allowed.
bench: build install
	$(PIP_INSTALL) --group bench
	@PATH="$$PATH:/usr/sbin:/sbin"; command -v nginx >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y --no-install-recommends nginx-light; } || \
		{ echo "make: nginx was not found; install it, for example: sudo apt-get install nginx-light" >&2; exit 1; }
	cargo build --release --manifest-path benches/baseline/Cargo.toml --target-dir target/baseline
	$(BIN)/python benches/run.py
	$(BIN)/python benches/request_counts.py
	$(BIN)/python benches/wall_time.py
	$(BIN)/python benches/set_memory.py

# Runs the simulation of the whole client with other seeds each time: make simulate SEEDS=100000, or SEEDS=0 without end.
# A seed that fails is replayed by make simulate START=seed SEEDS=1.
SEEDS ?= 100000
START ?= $(shell date +%s)
simulate: tools
	@# Its three tests at once: without end, two cores would run two of them and never the third one.
	SIMULATION_START=$(START) SIMULATION_SEEDS=$(SEEDS) \
		cargo test --features service,planted-bugs --lib simulation::no_seed -- --nocapture --test-threads=3

# Runs the list reader through every schedule within larger bounds than `make test` does; takes minutes.
enumerate: tools
	ENUMERATE=large cargo test --config profile.test.package.chainframe.opt-level=3 \
		--features service,planted-bugs --lib enumeration -- --nocapture

# Changes the code of the list reader, one expression at a time, and lists the changes that no test notices. First with few
# schedules, then those that survive with the schedules of `make test`. Takes hours; a part of the changes, evenly chosen:
# make mutants SHARD=0/8
SHARD ?= 0/1
MUTANTS := target/tools/bin/cargo-mutants mutants --dir target/mutants --shard $(SHARD) --sharding round-robin
# Changes that no test notices, and those that run forever, are what is looked for.
FOUND := || case $$? in 2|3) ;; *) exit 1; esac
mutants: mutation-package
	@test -x target/tools/bin/cargo-mutants || cargo install --locked --root target/tools cargo-mutants
	ENUMERATE=tiny $(MUTANTS) --output target $(FOUND)
	$(MUTANTS) --iterate --output target $(FOUND)
	@# Of every changed reader, the results that are wrong and called complete in spite of the audit: "caught" ones.
	@# Built as a release is: no assertions, but numbers are checked.
	ENUMERATE=audit CARGO_PROFILE_TEST_DEBUG_ASSERTIONS=false CARGO_PROFILE_TEST_OVERFLOW_CHECKS=true \
		$(MUTANTS) --output target/audited -- enumeration $(FOUND)
	@echo "changes of the reader whose wrong results the audit passes: $$(wc -l < target/audited/mutants.out/caught.txt)"

# Copies the reader into a package of its own, and checks that the package has all that the reader uses.
mutation-package: .venv/pip
	$(BIN)/python scripts/mutation_package.py target/mutants
	cargo check --quiet --tests --manifest-path target/mutants/Cargo.toml

# Looks, by coverage, for inputs that fail a check, each target for the given time: make fuzz SECONDS=600 TARGETS=number
# An input that fails is kept as target/fuzz/failed-*: fix the code, and add it to fuzz/corpus.
SECONDS ?= 60
TARGETS ?= response number cursor event
COVERAGE := -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)
fuzz: HOST = $(shell rustc --print host-tuple)
fuzz:
	@# The versions of the dependencies are those of the package.
	cp Cargo.lock fuzz/Cargo.lock
	RUSTFLAGS="$(COVERAGE)" cargo build --release --manifest-path fuzz/Cargo.toml --target $(HOST) --target-dir target/fuzz
	set -e; for target in $(TARGETS); do \
		mkdir -p target/fuzz/found/$$target; \
		target/fuzz/$(HOST)/release/$$target -max_total_time=$(SECONDS) -max_len=16384 -timeout=20 -verbosity=0 \
			-print_final_stats=1 -artifact_prefix=target/fuzz/failed-$$target- target/fuzz/found/$$target fuzz/corpus/$$target; \
	done

# Builds the site into target/site.
docs: tools build install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Regenerates the record classes of the stub from the declaration.
stub: dev
	$(BIN)/python scripts/generate_stub.py
	$(BIN)/ruff format python/chainframe/_native.pyi

fmt: tools
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf .venv dist demo target

# The profile of a wheel: release, or dev, which tests use. `make bare` and the workflows test the released wheel.
PROFILE ?= release
build: .venv/pip
	@command -v cargo >/dev/null || { echo "make: cargo was not found; install Rust 1.95 or later" >&2; exit 1; }
	$(PIP_INSTALL) --group build
	rm -rf dist
	$(BIN)/python scripts/build_wheel.py --profile $(PROFILE) --out dist --interpreter $(BIN)/python

# Targets that install packages before the wheel is installed: two runs of pip would write the same files.
PACKAGES :=
install: build $(PACKAGES)
	$(PIP_INSTALL) --force-reinstall --no-deps dist/*.whl
	$(PIP_INSTALL) "$$(echo dist/*.whl)[all]"

# Development build: little optimized, incremental; changes of Python files need no rebuild.
dev: tools
	$(PIP_INSTALL) --group build
	@# A change is built more often than all tests are run.
	CARGO_PROFILE_DEV_OPT_LEVEL=1 $(BIN)/maturin develop

tools: .venv/dev

.venv/dev: .venv/pip
	$(PIP_INSTALL) --group dev
	@touch $@

# Dependency groups need a newer pip than that of Python 3.11.
.venv/pip: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later was found; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP_INSTALL) --upgrade 'pip>=25.1'
	@touch $@
