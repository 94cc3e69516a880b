#!/usr/bin/env bash
# Builds the program, and a script for each stage. Outside the library's repository, SYNCHROMESH_ROOT says where that is.
set -euo pipefail
cd "$(dirname "$0")/../submission"
library=../../../crates/synchromesh
if [ -n "${SYNCHROMESH_ROOT:-}" ]; then
    library="$SYNCHROMESH_ROOT/crates/synchromesh"
    sed -i "s|^synchromesh = .*|synchromesh = { path = \"$library\" }|" Cargo.toml
fi
[ -e "$library/Cargo.toml" ] || grep -q "^synchromesh = { path = \"/" Cargo.toml || {
    echo "no library at $library: set SYNCHROMESH_ROOT to its repository" >&2
    exit 2
}
cargo build --release --target-dir target
mkdir -p build
for stage in src/stages/*.rs; do
    name="$(basename "$stage" .rs)"
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$PWD/target/release/fetch-by-similarity" "$name" > "build/$name"
    chmod +x "build/$name"
done
