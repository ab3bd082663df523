#!/usr/bin/env bash
# Runs Watch in a network namespace of its own, and changes links, addresses, routes and rules there. Needs no
# privileges if the kernel permits user namespaces.
#     Examples/Watch/demo.sh PATH-OF-WATCH
set -euo pipefail
WATCH=$1

missing=""
command -v ip > /dev/null || [ -x /usr/sbin/ip ] || missing="the program ip; install iproute2"
[ -n "$missing" ] || unshare --user --map-root-user --net true 2> /dev/null \
    || missing="network namespaces for this user: the kernel or its security modules forbid them (unshare --user --net)"
if [ -n "$missing" ]; then
    echo "This demonstration needs $missing."
    echo "Watch prints the present state of this machine, and a request:"
    echo | "$WATCH" localhost
    exit
fi

# The inner script: Watch reads commands from descriptor 3, and its lines arrive on descriptor 4.
exec unshare --user --map-root-user --net --pid --fork --kill-child bash -c '
    PATH=$PATH:/usr/sbin:/sbin
    coproc WATCH { exec "$0" 10.9.0.7 2> /dev/null; }
    exec 3>&"${WATCH[1]}" 4<&"${WATCH[0]}"
    # shows TEXT prints the lines of Watch up to the first line that contains TEXT.
    shows() {
        local line
        while IFS= read -r -t 30 line <&4; do
            echo "    $line"
            if [[ $line == *"$1"* ]]; then return 0; fi
        done
        echo "Watch did not print: $1" >&2
        exit 1
    }
    run() { echo "\$ $*"; "$@"; }

    shows "path: not connected"
    run ip link set lo up
    run ip link add eth0 type veth peer name far0
    ip link set far0 up
    run ip link set eth0 up
    run ip address add 10.9.0.1/24 dev eth0
    shows "10.9.0.7: connected by eth0"
    run ip route add default via 10.9.0.2
    shows "path: connected by eth0"
    echo "\$ # the link loses its carrier, as without its cable"
    ip link set far0 down
    shows "path: not connected: the link is down"
    ip link set far0 up
    shows "path: connected by eth0"
    echo "\$ # a second network, which a routing rule selects, as with a VPN"
    ip link add vpn0 type veth peer name far1
    ip link set far1 up
    ip link set vpn0 up
    ip address add 10.8.0.1/24 dev vpn0
    ip route add default via 10.8.0.2 table 100
    run ip rule add from all lookup 100 priority 100
    shows "path: connected by vpn0"
    run ip rule delete priority 100
    shows "path: connected by eth0"
    echo "\$ # a request that takes 1.5 s; the activity is shown after 1 s"
    echo >&3
    shows "activity: on"
    shows "activity: off"
    run ip link delete eth0
    shows "path: not connected: no route"
' "$WATCH"
