#!/usr/bin/env bash
# The adapter of `tests/oracles/conformance.py` for this project: the jobs are examples/src/bin/conformance.rs.
# usage: tests/oracles/conformance.py tests/oracles/conformance_adapters/gristmill.sh
set -euo pipefail
job=$1 output=$2
shift 2
root=$(cd "$(dirname "$0")/../../.." && pwd)
program=${CONFORMANCE_PROGRAM:-${CARGO_TARGET_DIR:-$root/target}/debug/conformance}
# A split takes as many files as fit. With the size of the largest file, each file is a split of its own.
split=$(wc -c "$@" | awk '$2 != "total" && largest < $1 { largest = $1 } END { print largest }')
exec "$program" run "$job" "$@" --output "$output" --workers "$MR_WORKERS" --slots 1 --memory 192MiB \
    --reduces "$MR_REDUCES" --split-size "${split}B" --no-sync --quiet
