# Shared by the bash scripts: source it, do not run it.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "error: $*"; exit 1; }

# as_root COMMAND… runs it as root, by sudo when needed. Fails when neither is possible.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# apt_install PACKAGE… installs without questions and without a word unless it fails.
apt_install() {
    local log
    log=$(mktemp)
    if as_root apt-get update -qq > "$log" 2>&1 \
        && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >> "$log" 2>&1
    then
        rm -f "$log"
    else
        tail -n 20 "$log" >&2
        rm -f "$log"
        return 1
    fi
}

# keep_services_stopped stops apt from starting the servers it installs; allow_services takes that back.
#
# The policy holds while this process runs: after a kill it allows services again, removes itself at its next call, and
# does not stand in the way of the next one.
POLICY=/usr/sbin/policy-rc.d
POLICY_MADE=""
keep_services_stopped() {
    if [ -e "$POLICY" ] && ! is_stale_policy; then return 0; fi
    printf '#!/bin/sh\n# curlew policy of process %s\n[ ! -d /proc/%s ] || exit 101\nrm -f "$0"\n' "$$" "$$" \
        | as_root tee "$POLICY" > /dev/null && as_root chmod 755 "$POLICY" || return 1
    POLICY_MADE=yes
}
is_stale_policy() {
    local maker
    maker=$(sed -nE 's/^# curlew policy of process ([0-9]+)$/\1/p' "$POLICY" 2> /dev/null)
    [ -n "$maker" ] && [ ! -d "/proc/$maker" ]
}
allow_services() { if [ -n "$POLICY_MADE" ]; then as_root rm -f "$POLICY"; fi; }

# step NAME COMMAND… runs a command with its output in a log below $STEP_LOGS, and one line on the terminal.
# The log of the latest step is $STEP_LOG; a failing step prints the log's tail and ends the script.
STEP_TABLE=""
STEP_LOGS=${STEP_LOGS:-.build/ci}
step() {
    local name=$1 began status=0
    shift
    mkdir -p "$STEP_LOGS"
    STEP_LOG=$(step_log "$name")
    began=$(date +%s)
    say "==> $name"
    # In a subshell of its own `set -e` still holds; behind `||` or `if` it would not.
    set +e
    (set -e; "$@") > "$STEP_LOG" 2>&1 < /dev/null
    status=$?
    set -e
    STEP_TABLE+=$(minutes $(($(date +%s) - began)) "$name")$'\n'
    if [ "$status" -eq 0 ]; then return 0; fi
    warn "--- last lines of $STEP_LOG"
    tail -n 60 "$STEP_LOG" >&2
    die "step '$name' failed"
}

# step_log NAME prints where the log of a step is kept.
step_log() { say "$STEP_LOGS/${1//[^A-Za-z0-9]/-}.log"; }

# minutes SECONDS NAME prints one row of the table of times.
minutes() { awk -v s="$1" -v n="$2" 'BEGIN { printf "%7.1f min  %s\n", s / 60, n }'; }
