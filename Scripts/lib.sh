# Functions for the bash scripts. Source this file; do not run it.
# shellcheck shell=bash

# The servers of tests and demos are on this machine, and sessions use the proxies in the environment.
without_proxies() { unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY; }

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "error: $*"; exit 1; }

# as_root COMMAND… runs a command as root, with sudo if needed. It fails if neither is possible.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# apt_install PACKAGE… installs packages without questions, and prints output only if it fails.
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

# keep_services_stopped prevents apt from starting the servers that it installs; allow_services ends this.
#
# The policy applies while this process runs. If the process is killed, the policy allows services again, removes itself
# at its next call, and does not block a later policy.
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

# step NAME COMMAND… runs a command, writes its output to a log below $STEP_LOGS, and prints one line on the terminal.
# The log of the latest step is $STEP_LOG. A failing step prints the end of the log and ends the script.
STEP_TABLE=""
STEP_LOGS=${STEP_LOGS:-.build/ci}
step() {
    local name=$1 began status=0
    shift
    mkdir -p "$STEP_LOGS"
    STEP_LOG=$(step_log "$name")
    began=$(date +%s)
    say "==> $name"
    # Use a subshell, because `set -e` has no effect in a command before `||` or in an `if` condition.
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

# step_log NAME prints the path of a step's log.
step_log() { say "$STEP_LOGS/${1//[^A-Za-z0-9]/-}.log"; }

# minutes SECONDS NAME prints one row of the table of times.
minutes() { awk -v s="$1" -v n="$2" 'BEGIN { printf "%7.1f min  %s\n", s / 60, n }'; }
