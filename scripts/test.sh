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
cargo test --workspace --no-fail-fast "$@"
# With the programs that the tests have built; not when only some tests are asked for.
if ((! $#)); then
    # What went wrong for people who do this work with other tools.
    scripts/reports.sh
    # The live page in a browser; how it looks with everything on it, first that a worse one would be noticed; under load for
    # ten minutes it is tried by hand (scripts/page_load.py).
    scripts/page.py
    scripts/page_looks.py --self-test
    scripts/page_looks.py
    scripts/page_load.py --self-test
    # The checks of a course's lab: first that each would notice what it looks for, then our own answers.
    scripts/conformance.py --self-test
    scripts/conformance.py scripts/conformance_adapters/gristmill.sh
    # The Python package, in an environment of its own. Code 3: packages could not be installed, which it says.
    scripts/python.py || [[ $? == 3 ]]
    # What mrjob and luigi ship, on the program as `hadoop`. Code 3: they could not be installed, which it says.
    scripts/mrjob.py || [[ $? == 3 ]]
    # The book: that a wrong one would be noticed, then its commands and its pages.
    scripts/book.py --self-test
    scripts/book.py run
    # Code 3: what makes its pages could not be installed, which it says.
    scripts/book.py build || [[ $? == 3 ]]
fi
