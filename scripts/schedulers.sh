#!/usr/bin/env bash
# Measures the schedulers on real execution and keeps the pages: 70 minutes on two cores, with nothing else running.
#   scripts/schedulers.sh [--skip-build] [DIR]    into DIR (benches/results/DAY/schedulers)
# Parts: papers, loads (three of them, with simulated beside measured), busy (real work, many policies), default (real
# work, the default policy and its nearest rivals, often), tiny (jobs beside huge ones, with preemption and without), overhead (what deciding costs), hundred (workers), decisions
# (what one costs the core). $PARTS names those to run, all by default. Of each comparison its page and a line for each
# job stay, of the papers the page, its numbers and the claims.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == --skip-build ]]; then
    shift
else
    cargo build --profile dist -p gristmill --features full
fi
program=${CARGO_TARGET_DIR:-target}/dist/gristmill
out=${1:-benches/results/$(date +%F)/schedulers}
parts=${PARTS:-papers loads busy default tiny overhead hundred decisions}
mkdir -p "$out"
log=$out/commands.txt
say() { echo "schedulers.sh: $*" >&2; }
wanted() { [[ " $parts " == *" $1 "* ]]; }

# Runs a command, notes it, its time and what it printed.
noted() {
    local begun=$SECONDS
    {
        echo "\$ ${*/#$program/gristmill}"
        "$@"
        echo "($((SECONDS - begun)) s)"
        echo
    } | tee -a "$log"
}

# Figures are in the pages; their files go, and the links to them.
alone() { # page
    sed --in-place --regexp-extended 's|<span class="files">( <a [^>]*>[A-Z]+</a>)*</span>||g' "$1"
}

# A comparison whose page stays and whose runs go.
compared() { # name, arguments
    local name=$1
    shift
    say "$name"
    noted "$program" compare "$@" --out "$out/$name" --quiet
    rm -rf "${out:?}/$name"/{runs,data,isolated,figures,compare.json,isolated.json,results.json}
    alone "$out/$name/report.html"
}

if wanted papers; then
    say "papers"
    noted "$program" paper all --real --out "$out/papers" --overwrite
    find "$out/papers" -mindepth 2 -type f ! -name '*-claims.csv' -delete
    alone "$out/papers/index.html"
fi
if wanted loads; then
    for load in 0.5:530ms 0.8:331ms 1.1:241ms; do
        workload=$out/sleeping-${load%:*}.toml
        sed "s/^mean-interval = .*/mean-interval = \"${load#*:}\"/" examples/workloads/sleeping.toml >"$workload"
        compared "load-${load%:*}" "$workload" --repeat 3 \
            --policy fair,max-srpt,asrpt:slot=100ms,gristmill:preemptive=no,gristmill
        rm "$workload"
    done
fi
if wanted busy; then
    compared busy examples/workloads/busy.toml --repeat 5 \
        --policy fair,fifo,max-srpt,split-srpt,asrpt:slot=100ms,gristmill:preemptive=no,gristmill
fi
if wanted default; then
    compared default examples/workloads/busy.toml --repeat 12 --isolated \
        --policy gristmill,fair,max-srpt,split-srpt,asrpt:slot=100ms
fi
if wanted tiny; then
    compared tiny examples/workloads/tiny.toml --repeat 12 --policy gristmill,gristmill:preemptive=no
fi
if wanted overhead; then
    compared overhead examples/workloads/standard.toml --repeat 8 \
        --policy fifo,fair,max-srpt,k-lps,gristmill
fi
if wanted hundred; then
    say "hundred workers"
    noted scripts/hundred.py --program "$program"
fi
if wanted decisions; then
    say "decisions"
    noted cargo bench --quiet --profile dist -p gristmill-scheduler --bench events
fi
