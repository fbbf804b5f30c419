#!/usr/bin/env bash
# Runs all tests. Some compare with other programs, or play several machines with network namespaces; those are
# installed first where that is possible. What cannot run here says so on stderr and does not fail.
set -euo pipefail
cd "$(dirname "$0")/.."

# Package of each program, as Debian names it.
declare -A package_of=([sqlite3]=sqlite3 [rg]=ripgrep [ip]=iproute2 [zstd]=zstd [gzip]=gzip [unshare]=util-linux
    [chromium]=chromium [chromedriver]=chromium-driver)
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

# All targets but benches, examples included: one of them is a program that tests run. All are run, whichever fails.
cargo test --workspace --features full --no-fail-fast "$@"
# With the programs that the tests have built; not when only some tests are asked for.
if ((! $#)); then
    # What went wrong for people who do this work with other tools.
    tests/oracles/reports.sh
    # The live page in a browser.
    scripts/page.py
    # The checks of a course's lab: first that each would notice what it looks for, then our own answers.
    tests/oracles/conformance.py --self-test
    tests/oracles/conformance.py tests/oracles/conformance_adapters/gristmill.sh
    # The Python package, in an environment of its own. Code 3: packages could not be installed, which it says.
    scripts/python.py || [[ $? == 3 ]]
    # The commands of README.md and the book: that a wrong one would be noticed, then all of them.
    scripts/book.py --self-test
    scripts/book.py run
fi
