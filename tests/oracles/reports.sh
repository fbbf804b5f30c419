#!/usr/bin/env bash
# Runs cases of public bug reports, each a directory with a run.sh that exits with 0 if right, 77 if skipped, and another code if wrong.
# Usage: tests/oracles/reports.sh [DIRECTORY [PROGRAM]]
set -euo pipefail
cd "$(dirname "$0")/../.."
cases=${1:-../shared/cases/reports}
export GM=${2:-$PWD/target/debug/gristmill} PYTHONPATH=$PWD/python
if [[ ! -d $cases ]]; then
    echo "reports.sh: skipped: there is no directory $cases" >&2
    exit 0
fi

declare -A package_of=([xz]=xz-utils [lz4]=lz4 [zstd]=zstd [mount.exfat-fuse]=exfat-fuse [mkfs.exfat]=exfatprogs [bindfs]=bindfs)
missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
if ((${#missing[@]})) && [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq "${missing[@]}"; } >/dev/null ||
        echo "reports.sh: could not install ${missing[*]}; cases that need them are skipped" >&2
fi

# Runs one case, and writes its name and the last line of its output.
one() {
    local code=0 said
    said=$(timeout 600 "$1" 2>&1 | tail -n 1; exit "${PIPESTATUS[0]}") || code=$?
    printf '%s: %s\n' "$(basename "$(dirname "$1")")" "$said"
    [[ $code == 0 || $code == 77 ]]
}
export -f one
# Most cases wait most of the time.
if ! printf '%s\0' "$cases"/*/run.sh | xargs -0 -n 1 -P 3 bash -c 'one "$0"'; then
    echo "reports.sh: some are wrong" >&2
    exit 1
fi
