# Starts or ends the workers of one host. `gristmill cluster up --on ssh` and `gristmill cluster down` send this to `ssh HOST sh -s`,
# with these variables in front of it, and the flags of the workers as positional parameters (`set -- FLAG...`):
#   verb     start or end
#   directory   directory of these workers, below the home directory; it exists
#   program  path of gristmill on the host; empty if it was sent into the directory
#   join     the line with which workers join; it is in no command line, environment or file
set -eu
umask 077
cd "$HOME"

fail() {
    echo "$1" >&2
    exit 1
}

# Sets state, session and start time of process $1.
look() {
    { read -r line < "/proc/$1/stat"; } 2> /dev/null || return 1
    # The name before the parenthesis may contain any character.
    set -- ${line##*) }
    state=$1 session=$4 start=${20}
}

boot_id() {
    cat /proc/sys/kernel/random/boot_id
}

# Lists the live processes of the session that process $1 leads.
members() {
    for entry in /proc/[0-9]*; do
        look "${entry#/proc/}" && [ "$session" = "$1" ] && [ "$state" != Z ] && echo "${entry#/proc/}"
    done
    return 0
}

# True unless process number $pid has been reused, which the kernel does not do while the session has members.
is_ours() {
    [ "$boot" = "$(boot_id)" ] && { ! look "$pid" || [ "$start" = "$started" ]; }
}

# Waits for the session to end, at most $1 tenths of a second.
ends_within() {
    left=$1
    while [ -n "$(members "$pid")" ]; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        sleep 0.1
    done
}

start_workers() {
    if [ -z "$program" ]; then
        program=$directory/gristmill
        chmod 700 "$program"
    fi
    [ -x "$program" ] || fail "$program does not exist; without --program it is sent"
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/gristmill-guest-XXXXXX")
    echo "$temporary" > "$directory/temporary"
    printf '%s\n' "$join" | TMPDIR=$temporary setsid "$program" worker --join - "$@" > "$directory/worker.log" 2>&1 &
    pid=$!
    look "$pid"
    echo "$pid $start $(boot_id)" > "$directory/process"
    # Invalid flags end the workers at once.
    sleep 0.5
    if ! look "$pid" || [ "$state" = Z ]; then
        said=$(end_workers)
        fail "its workers ended at once: $said"
    fi
    getconf _NPROCESSORS_ONLN
}

# Ends the workers, prints the end of their log and removes all their files.
end_workers() {
    [ -d "$directory" ] || return 0
    if { read -r pid started boot < "$directory/process"; } 2> /dev/null && is_ours; then
        # They end by themselves after their master. A second signal ends them at once.
        ends_within 50 || { kill -TERM "$pid"; sleep 0.2; kill -TERM "$pid"; ends_within 50; } 2> /dev/null || {
            echo "the workers did not end when they were asked to, and were killed" >> "$directory/worker.log"
            kill -KILL $(members "$pid")
            ends_within 50 || fail "process $pid does not end"
        }
    fi
    tail -c 65536 "$directory/worker.log" 2> /dev/null || true
    rm -rf "$(cat "$directory/temporary" 2> /dev/null)" "$directory"
    rmdir "${directory%/*}" 2> /dev/null || true
}

"${verb}_workers" "$@"
