// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

/// Real links, addresses, routes and rules that appear and disappear.
@Suite(
    .serialized, .timeLimit(.minutes(5)), .peer(.ip), .enabledIfInstalled(.ip),
    .enabled(
        if: NetworkNamespace.isPermitted,
        "the kernel does not permit user and network namespaces (unshare --user --net), or util-linux is missing"))
struct NamespaceTests {
    @Test func linksAddressesRoutesAndRulesDecideThePath() async throws {
        let network = try NetworkNamespace(watching: ["10.9.0.7", "127.0.0.1"])
        _ = try await network.wait(for: "path: not connected: no route")
        try network.run("ip link set lo up")
        _ = try await network.wait(for: "127.0.0.1: connected by lo (loopback")

        try network.run(
            "ip link add eth0 type veth peer name far0", "ip link set far0 up", "ip link set eth0 up",
            "ip address add 10.9.0.1/24 dev eth0")
        _ = try await network.wait(for: "10.9.0.7: connected by eth0 (ethernet")
        try network.run("ip route add default via 10.9.0.2")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")

        // The link loses its carrier.
        try network.run("ip link set far0 down")
        _ = try await network.wait(for: "path: not connected: the link is down")
        try network.run("ip link set far0 up")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")

        // A routing rule selects another table.
        try network.run(
            "ip link add eth1 type veth peer name far1", "ip link set far1 up", "ip link set eth1 up",
            "ip address add 10.8.0.1/24 dev eth1", "ip route add default via 10.8.0.2 table 100",
            "ip rule add from all lookup 100 priority 100")
        _ = try await network.wait(for: "path: connected by eth1 (ethernet")
        try network.run("ip rule delete priority 100")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")

        // Two routes that cover the Internet together.
        try network.run("ip route add 0.0.0.0/1 dev eth1", "ip route add 128.0.0.0/1 dev eth1")
        _ = try await network.wait(for: "path: connected by eth1 (ethernet")
        try network.run("ip route delete 0.0.0.0/1", "ip route delete 128.0.0.0/1")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")

        // A route that refuses one address.
        try network.run("ip route add unreachable 10.9.0.7/32")
        _ = try await network.wait(for: "10.9.0.7: not connected: no route")
        try network.run("ip route delete unreachable 10.9.0.7/32")
        _ = try await network.wait(for: "10.9.0.7: connected by eth0 (ethernet")

        // The interface loses its address, then disappears.
        try network.run("ip address delete 10.9.0.1/24 dev eth0")
        _ = try await network.wait(for: "path: not connected: no route")
        try network.run("ip address add 10.9.0.1/24 dev eth0", "ip route add default dev eth0")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")
        try network.run("ip link delete eth0")
        _ = try await network.wait(for: "path: not connected: no route")
    }

    @Test func pathNeedsAnAddressBeyondTheLink() async throws {
        let network = try NetworkNamespace(watching: [])
        _ = try await network.wait(for: "path: not connected: no route")
        try network.run(
            "ip link add eth0 type veth peer name far0", "ip link set far0 up", "ip link set eth0 up",
            "ip address add 169.254.7.7/16 dev eth0", "ip route add default dev eth0")
        _ = try await network.wait(for: "path: not connected: no address")
        try network.run("ip -6 address add fd00::1/64 dev eth0 nodad", "ip -6 route add default via fd00::2")
        _ = try await network.wait(for: "path: connected by eth0 (ethernet")
        try network.run("ip -6 route delete default")
        _ = try await network.wait(for: "path: not connected: no address")
    }

    /// A request to an unreachable server waits for the real path, and the waiting request counts as activity.
    @Test func retryWaitsForTheRealPath() async throws {
        let network = try NetworkNamespace(watching: ["127.0.0.1"])
        _ = try await network.wait(for: "127.0.0.1: not connected: no route")
        try network.run("> http://127.0.0.1:1/")
        _ = try await network.wait(for: "activity: on")
        try network.run("ip link set lo up")
        // With a route, the kernel refuses each further attempt at once.
        let lines = try await network.wait(for: "activity: off")
        #expect(lines.contains { $0.hasPrefix("127.0.0.1: connected by lo (loopback") })
        #expect(lines.contains { $0.hasPrefix("error: ") })
    }
}
