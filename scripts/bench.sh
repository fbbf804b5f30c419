#!/usr/bin/env bash
# Installs the requirements of the benchmarks once, and runs all of them, or those of the arguments (`scripts/bench.sh --help`).
#   scripts/bench.sh                     everything
#   scripts/bench.sh table sort          one row, compared with other systems
# Directories: $GRISTMILL_BENCH_HOME (target/bench) for builds and results, $GRISTMILL_BENCH_DATA (its subdirectory data) for
# 9 GB of inputs, $GRISTMILL_BENCH_PEERS (../shared/peers) for the other systems' jobs. Requirements that cannot be
# installed are reported on stderr, and their rows are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

absolute() { realpath --canonicalize-missing "$1"; }
home=$(absolute "${GRISTMILL_BENCH_HOME:-target/bench}")
data=$(absolute "${GRISTMILL_BENCH_DATA:-$home/data}")
peers=$(absolute "${GRISTMILL_BENCH_PEERS:-../shared/peers}")
export GRISTMILL_BENCH_HOME=$home GRISTMILL_BENCH_DATA=$data GRISTMILL_BENCH_PEERS=$peers
export CARGO_TERM_QUIET=${CARGO_TERM_QUIET:-true}
mkdir -p "$home" "$data"

say() { echo "bench.sh: $*" >&2; }

# Programs of this repository. --skip-build measures the last build.
if [[ ${1:-} == --skip-build ]]; then
    shift
else
    say "building what is shipped (minutes)"
    cargo build --profile dist -p gristmill -p gristmill-benches
fi
program=${CARGO_TARGET_DIR:-target}/dist

# The limit programs and Renoir: built from their sources into a directory of ours, as theirs may be read-only.
build_peer() { # directory, program
    local target=$home/$1/target
    [[ -x $target/release/$2 ]] && return
    if [[ ! -d $peers/$1 ]]; then
        say "no $1 in \$GRISTMILL_BENCH_PEERS: left out"
        return
    fi
    say "building $1"
    (cd "$peers/$1" && CARGO_TARGET_DIR=$target cargo build --release --locked) || say "$1 cannot be built: left out"
}
build_peer limit limit
build_peer renoir renoir-wc

# DuckDB and Polars.
python=$home/venv/a/bin/python
if ! "$python" -c 'import duckdb, polars' 2>/dev/null; then
    say "installing DuckDB and Polars"
    { python3 -m venv "$home/venv/a" && "$home/venv/a/bin/pip" install --quiet duckdb polars pyarrow numpy; } >&2 ||
        say "DuckDB and Polars cannot be installed: left out"
fi

# The current ripgrep: that of a distribution is years behind, and a third as fast at regular expressions.
ripgrep=15.2.0
if [[ $("$home/bin/rg" --version 2>/dev/null) != "ripgrep $ripgrep"* ]]; then
    say "installing ripgrep $ripgrep"
    cargo install --quiet --locked --root "$home" --version "$ripgrep" ripgrep >&2 || say "ripgrep $ripgrep cannot be installed: left out"
fi

# Inputs: those of the other systems' figures, or similar generated ones.
make_data() {
    local books=$peers/../data/books generator=$home/limit/target/release/gen_data
    say "making inputs (4 GB, minutes)"
    if [[ -x $generator ]] && compgen -G "$books/pg-*.txt" >/dev/null; then
        mkdir -p "$data/pg"
        cp -f "$books"/pg-*.txt "$data/pg/"
        DATA=$data "$generator" all >&2
        echo "gen_data of the limit programs" >"$data/MADE_BY"
    else
        say "no books or no gen_data: the inputs are of our own making, unlike those of quoted figures"
        "$program/gristmill" gen text "$data/books-1g.txt" --size 1GiB --words 50000 --overwrite >&2
        "$program/gristmill" gen text "$data/zipf-1g.txt" --size 1GiB --words 5000000 --seed 2 --overwrite >&2
        "$program/gristmill" gen records "$data/tera-1g.txt" --size 1000000000 --overwrite >&2
        "$program/gristmill" gen tables "$data" --size 700000000 --overwrite >&2
        # The other systems' tables have no headers.
        sed -i 1d "$data/users.csv" "$data/visits.csv"
        echo "gristmill gen" >"$data/MADE_BY"
    fi
}
inputs_complete() {
    local file
    for file in books-1g.txt zipf-1g.txt tera-1g.txt users.csv visits.csv MADE_BY; do
        [[ -s $data/$file ]] || return 1
    done
}
inputs_complete || make_data

# Inputs derived from those, and additional ones, for rows without a limit program.
packed() { # directory, command: the books in 8 files
    [[ -d $data/$1 ]] && return
    say "packing books with $2"
    rm -rf "$data/$1.new" && mkdir "$data/$1.new"
    split -n l/8 -d "$data/books-1g.txt" "$data/$1.new/part-"
    # shellcheck disable=SC2086
    find "$data/$1.new" -type f -print0 | xargs -0 -P2 -n1 $2 && mv "$data/$1.new" "$data/$1"
}
packed books-gz gzip
if command -v zstd >/dev/null; then packed books-zst "zstd -q --rm"; else say "no zstd: left out"; fi
if [[ ! -d $data/small-files ]]; then
    say "making 50,000 small files"
    rm -rf "$data/small-files.new" && mkdir "$data/small-files.new"
    head -c 100000000 "$data/books-1g.txt" | split -b 2000 -a 5 -d - "$data/small-files.new/"
    mv "$data/small-files.new" "$data/small-files"
fi
# Users in a shuffled order, visits at random; in the second table a tenth of them are by one user.
large_join() { # directory, share of the visits by one user
    [[ -d $data/$1 ]] && return
    say "making tables of 10 million rows"
    rm -rf "$data/$1.new" && mkdir "$data/$1.new"
    awk 'BEGIN { for (i = 0; i < 1e7; i++) { id = (i * 7654321) % 1e7 + 1; print id ",C" id % 200 "," id % 90 ",2020-01-" id % 28 + 1 } }' \
        >"$data/$1.new/users.csv"
    awk -v share="$2" 'BEGIN { srand(1); for (i = 1; i <= 1e7; i++) {
        id = rand() < share ? 1 : int(rand() * 1e7) + 1
        print i "," id ",/page/" id * 31 % 99991 "," i % 5000 "," i % 997 "." i % 100 } }' >"$data/$1.new/visits.csv"
    mv "$data/$1.new" "$data/$1"
}
large_join join-large 0
large_join join-large-skewed 0.1
[[ -s $data/distinct-1g.txt ]] ||
    "$program/gristmill" gen text "$data/distinct-1g.txt" --size 1GiB --words 16777216 --exponent 0 --seed 3 --overwrite >&2

exec "$program/gristmill-bench" --program "$program/gristmill" "$@"
