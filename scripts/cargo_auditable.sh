#!/bin/sh
# Cargo for maturin, which builds with `cargo rustc`: the built library holds the list of its crates.
exec cargo auditable "$@"
