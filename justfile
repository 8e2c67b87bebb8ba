# The commands that a contributor needs: `just` lists them. docs/CONTRIBUTING.md has them without just.

_list:
    @just --list

# Compile everything, without running it
check:
    cargo check --workspace --all-targets --locked

# Run all tests; PLEACH_TESTS=long runs their long form
test:
    cargo test --workspace --locked

# Check the layout of the sources, and lint; warnings are errors
lint:
    cargo fmt --all --check
    cargo lint

# Make the documentation of all crates; warnings are errors
docs:
    cargo docs

# Measure, as in: just bench lookup --quick
bench *ARGS:
    cargo run --release --locked -p pleach-bench -- {{ ARGS }}
