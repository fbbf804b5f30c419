#!/usr/bin/env bash
# Runs all tests. Some compare with other programs, or simulate several machines with network namespaces. Missing
# programs are installed first if possible. A test that cannot run here reports that on stderr and does not fail.
set -euo pipefail
cd "$(dirname "$0")/.."

# Package of each program, as Debian names it.
declare -A package_of=([sqlite3]=sqlite3 [rg]=ripgrep [ip]=iproute2 [zstd]=zstd [gzip]=gzip [unshare]=util-linux
    [chromium]=chromium [chromedriver]=chromium-driver
    [mount.exfat-fuse]=exfat-fuse [mkfs.exfat]=exfatprogs [bindfs]=bindfs)
missing=()
for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || missing+=("${package_of[$program]}")
done
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
if ((${#missing[@]})); then
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        echo "test.sh: installing ${missing[*]}" >&2
        # A test that lacks its program skips itself, so this may fail.
        { apt-get update -qq && apt-get install -y -qq "${missing[@]}"; } >/dev/null ||
            echo "test.sh: could not install ${missing[*]}; tests that need them are skipped" >&2
    else
        echo "test.sh: not installed: ${missing[*]}; tests that need them are skipped" >&2
    fi
fi
[[ $(id -u) == 0 ]] || echo "test.sh: not root: tests with network namespaces are skipped" >&2

# All targets except benches; tests run one of the examples. All are run, even if one fails.
if (($#)); then
    cargo test --workspace --features full --no-fail-fast "$@"
else
    # Most tests wait for processes most of the time, so at least four run at once. Those of the program that judge by
    # rates and times of several jobs run alone.
    alone=(lanes::bytes_ a_long_job_ends_under_a_stream_of_short_ones)
    threads=$(($(nproc) > 4 ? $(nproc) : 4))
    failed=0
    cargo test --workspace --features full --no-fail-fast -- --test-threads $threads "${alone[@]/#/--skip=}" || failed=1
    cargo test --workspace --features full --no-fail-fast --test it -- --test-threads 1 "${alone[@]}" || failed=1
    ((!failed))
    # What follows uses the programs that the tests have built.
    # Public bug reports about tools for the same work, which mostly wait.
    setsid tests/oracles/reports.sh &
    reports=$!
    trap 'kill -- -"$reports" 2>/dev/null || true' EXIT
    # The live page in a browser.
    scripts/page.py
    # The checks of a course's lab; first a test that each notices its error.
    tests/oracles/conformance.py --self-test
    tests/oracles/conformance.py tests/oracles/conformance_adapters/gristmill.sh
    # Plans and orders of drawn cases, computed again from the papers' text.
    tests/oracles/cases.py
    # The Python package, in an environment of its own. Code 3: packages could not be installed.
    scripts/python.py || [[ $? == 3 ]]
    # The commands of README.md and the book; first a test that wrong ones are noticed.
    scripts/book.py --self-test
    scripts/book.py run
    wait "$reports"
    trap - EXIT
fi
