#!/bin/sh
# Builds and runs the `protoc` beside this file. The outer cargo holds the lock of its own target
# directory while it runs build scripts, so this one builds into a directory of its own.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=${CARGO_TARGET_DIR:-"$here/../target"}
exec "${CARGO:-cargo}" run --quiet --locked --manifest-path "$here/Cargo.toml" \
    --target-dir "$target/protoc" -- "$@"
