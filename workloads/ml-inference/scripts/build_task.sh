#!/usr/bin/env bash
# Installs the library where it is not, and makes a program of each stage; SYNCHROMESH_ROOT says where its repository is.
set -euo pipefail
submission="$(cd "$(dirname "$0")/../submission" && pwd)"
library="${SYNCHROMESH_ROOT:-$submission/../../..}/crates/synchromesh-py"
python3 -c 'import synchromesh' 2>/dev/null || python3 -m pip install "$library"
mkdir -p "$submission/build"
for stage in "$submission"/client_*.py "$submission"/server_*.py; do
    program="$submission/build/$(basename "$stage" .py)"
    printf '#!/bin/sh\nexec python3 "%s" "$@"\n' "$stage" > "$program"
    chmod +x "$program"
done
