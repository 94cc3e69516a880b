#!/usr/bin/env bash
# Builds the stages; where this folder is not in the library's repository, SYNCHROMESH_ROOT says where that is.
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
find target/release -maxdepth 1 -type f -perm -u+x \( -name "client_*" -o -name "server_*" \) -exec cp {} build/ \;
