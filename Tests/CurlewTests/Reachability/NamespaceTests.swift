// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

/// Real links, addresses, routes and rules that appear and disappear.
@Suite(
    .timeLimit(.minutes(10)), .peer(.ip), .enabledIfInstalled(.ip),
    .enabled(
        if: NetworkNamespace.isPermitted,
        "the kernel does not permit user and network namespaces (unshare --user --net), or util-linux is missing"))
struct NamespaceTests {
    @Test func linksAddressesRoutesAndRulesDecideThePath() async throws {
        _ = try await NetworkNamespace.run(
            watching: ["10.9.0.7", "127.0.0.1"],
            [
                "< path: not connected: no route",
                "ip link set lo up",
                "< 127.0.0.1: connected by lo (loopback",

                // Link-local addresses of IPv6 would cause reports at any time, which would hide missing ones.
                "ip link add eth0 type veth peer name far0",
                "ip link set far0 up addrgenmode none",
                "ip link set eth0 up addrgenmode none",
                "ip address add 10.9.0.1/24 dev eth0",
                "< 10.9.0.7: connected by eth0 (ethernet",
                "ip route add default via 10.9.0.2",
                "< path: connected by eth0 (ethernet",

                // The carrier.
                "ip link set far0 down",
                "< path: not connected: the link is down",
                "ip link set far0 up",
                "< path: connected by eth0",

                // A routing rule selects another table.
                "ip link add eth1 type veth peer name far1",
                "ip link set far1 up addrgenmode none",
                "ip link set eth1 up addrgenmode none",
                "ip address add 10.8.0.1/24 dev eth1",
                "ip route add default via 10.8.0.2 table 100",
                "ip rule add from all lookup 100 priority 100",
                "< path: connected by eth1",
                "ip rule delete priority 100",
                "< path: connected by eth0",

                // Two routes that cover the Internet together.
                "ip route add 0.0.0.0/1 dev eth1",
                "ip route add 128.0.0.0/1 dev eth1",
                "< path: connected by eth1",
                "ip route delete 0.0.0.0/1",
                "ip route delete 128.0.0.0/1",
                "< path: connected by eth0",

                // A route that refuses one address.
                "ip route add unreachable 10.9.0.7/32",
                "< 10.9.0.7: not connected: no route",
                "ip route delete unreachable 10.9.0.7/32",
                "< 10.9.0.7: connected by eth0",

                // The address, then the link.
                "ip address delete 10.9.0.1/24 dev eth0",
                "< path: not connected: no route",
                "ip address add 10.9.0.1/24 dev eth0",
                "ip route add default dev eth0",
                "< path: connected by eth0",
                "ip link delete eth0",
                "< path: not connected: no route",
            ])
    }

    @Test func pathNeedsAnAddressBeyondTheLink() async throws {
        _ = try await NetworkNamespace.run(
            watching: [],
            [
                "< path: not connected: no route",
                "ip link add eth0 type veth peer name far0",
                "ip link set far0 up",
                "ip link set eth0 up",
                "ip address add 169.254.7.7/16 dev eth0",
                "ip route add default dev eth0",
                "< path: not connected: no address",
                "ip -6 address add fd00::1/64 dev eth0 nodad",
                "ip -6 route add default via fd00::2",
                "< path: connected by eth0",
                "ip -6 route delete default",
                "< path: not connected: no address",
            ])
    }

    /// A request to an unreachable server waits for the real path, and the waiting request counts as activity.
    @Test func retryWaitsForTheRealPath() async throws {
        let lines = try await NetworkNamespace.run(
            watching: ["127.0.0.1"],
            [
                "< 127.0.0.1: not connected: no route",
                "> http://127.0.0.1:1/",
                "< activity: on",
                "ip link set lo up",
                // Now the kernel refuses each further attempt at once.
                "< activity: off",
            ])
        #expect(lines.contains { $0.hasPrefix("127.0.0.1: connected by lo (loopback") })
        #expect(lines.contains { $0.hasPrefix("error: ") })
    }
}
