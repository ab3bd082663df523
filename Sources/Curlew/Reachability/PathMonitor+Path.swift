// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension PathMonitor {
    /// The state of the network between the machine and the Internet, an address or a host, at one instant.
    ///
    /// A path is satisfied if the kernel has a usable route: the interface of the route is running, and the machine has
    /// a suitable source address. A path of a host also needs an address of the host, and a path of
    /// ``PathMonitor/probing(_:)`` a successful probe.
    public struct Path: Sendable, Hashable {
        /// The kind of an interface.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The loopback interface, which stays within the machine.
            case loopback
            /// An Ethernet interface, also a virtual one, as in virtual machines and containers.
            case ethernet
            /// A wireless network.
            case wifi
            /// A mobile network.
            case cellular
            /// A tunnel, such as WireGuard or OpenVPN.
            case vpn
            /// Another kind.
            case other
        }

        /// An interface of the machine.
        public struct Interface: Sendable, Hashable {
            /// The kernel's name, such as `eth0`.
            public var name: String
            /// The kind of the interface.
            public var kind: Kind
            /// Whether the interface is up and connected.
            public var isRunning: Bool
            /// Whether the interface has an IPv4 address whose scope is wider than one link, or that of a loopback
            /// interface.
            public var hasIPv4: Bool
            /// Whether the interface has an IPv6 address whose scope is wider than one link, or that of a loopback
            /// interface.
            public var hasIPv6: Bool

            /// Whether `hasIPv4` or `hasIPv6` is true.
            public var hasAddress: Bool { hasIPv4 || hasIPv6 }

            /// Creates an interface, for tests and other sources of paths.
            ///
            /// - Parameters:
            ///   - name: The kernel's name.
            ///   - kind: The kind; `.ethernet` unless given.
            ///   - isRunning: Whether the interface is up and connected; true unless given.
            ///   - hasIPv4: Whether the interface has an IPv4 address; true unless given.
            ///   - hasIPv6: Whether the interface has an IPv6 address; false unless given.
            public init(
                _ name: String, kind: Kind = .ethernet, isRunning: Bool = true, hasIPv4: Bool = true,
                hasIPv6: Bool = false
            ) {
                self.name = name
                self.kind = kind
                self.isRunning = isRunning
                self.hasIPv4 = hasIPv4
                self.hasIPv6 = hasIPv6
            }
        }

        /// Whether a path is satisfied.
        public enum Status: String, Sendable, Hashable, CaseIterable {
            /// The state is unknown: the first look-up or probe has not ended, or the system does not permit netlink
            /// sockets, with which a monitor asks the kernel.
            case unknown
            /// The path does not work; ``Path/obstacle`` is the reason.
            case unsatisfied
            /// The kernel has a usable route, and the probe, if there is one, has succeeded.
            case satisfied
        }

        /// The reason why a path is unsatisfied or unknown.
        public enum Obstacle: String, Sendable, Hashable, CaseIterable {
            /// The kernel has no route, or a route that refuses the address.
            case noRoute
            /// The interface of the route is down or not connected.
            case linkDown
            /// The machine has no suitable source address for the route.
            case noAddress
            /// The look-up of the host's name failed, although a name server can be asked.
            case nameNotResolved
            /// The probe failed.
            case probeFailed
            /// The kernel does not answer, because the system forbids netlink sockets or has no free descriptors; the
            /// status is unknown.
            case noAnswer
        }

        /// The four states of AFNetworking's `AFNetworkReachabilityStatus`, with its numbers and texts.
        public enum Reachability: Int, Sendable, Hashable, CaseIterable, CustomStringConvertible {
            /// The status of the path is unknown.
            case unknown = -1
            /// The path is unsatisfied.
            case notReachable = 0
            /// The path is satisfied, and the route uses an interface of the kind `cellular`.
            case viaWWAN = 1
            /// The path is satisfied, and the route uses an interface of another kind, also with a cable.
            case viaWiFi = 2

            /// The text of AFNetworking, such as "Reachable via WiFi".
            public var description: String {
                switch self {
                case .unknown: "Unknown"
                case .notReachable: "Not Reachable"
                case .viaWWAN: "Reachable via WWAN"
                case .viaWiFi: "Reachable via WiFi"
                }
            }
        }

        /// Whether the path is satisfied.
        public var status: Status
        /// The reason why the path is unsatisfied, or why it stays unknown; nil for other states.
        public var obstacle: Obstacle?
        /// All interfaces of the machine, sorted by name.
        public var interfaces: [Interface]
        /// The interface of the route; nil without a usable route.
        ///
        /// The route to an address of this machine uses the loopback interface. If the routes of IPv4 and IPv6 to the
        /// Internet use different interfaces, this is the interface of the IPv4 route. If the routes to the addresses
        /// of a host use different interfaces, this is the interface of the first usable route, in the order of the
        /// look-up.
        public var outward: Interface?
        /// Whether the kernel has a usable IPv4 route.
        public var supportsIPv4: Bool
        /// Whether the kernel has a usable IPv6 route.
        public var supportsIPv6: Bool
        /// Whether the configuration of the system's resolver names a server (resolv.conf(5)).
        public var hasDNS: Bool
        /// Whether the machine's connection is metered, according to NetworkManager; nil if that is unknown.
        ///
        /// A guess of NetworkManager counts like a known value. The value is unknown on machines without
        /// NetworkManager, and until NetworkManager has replied.
        public var isMetered: Bool?

        /// Creates a path, for tests and other sources of paths.
        ///
        /// - Parameters:
        ///   - status: Whether the path is satisfied.
        ///   - outward: The interface of the route; nil unless given.
        ///   - interfaces: All interfaces; `outward` alone unless given.
        ///   - obstacle: The reason why the path is unsatisfied or unknown; nil unless given.
        ///   - supportsIPv4: Whether the kernel has a usable IPv4 route; by default whether `outward` has an IPv4
        ///     address.
        ///   - supportsIPv6: Whether the kernel has a usable IPv6 route; by default whether `outward` has an IPv6
        ///     address.
        ///   - hasDNS: Whether the resolver's configuration names a server; true unless given.
        ///   - isMetered: Whether the connection is metered; nil unless given.
        public init(
            _ status: Status, outward: Interface? = nil, interfaces: [Interface]? = nil, obstacle: Obstacle? = nil,
            supportsIPv4: Bool? = nil, supportsIPv6: Bool? = nil, hasDNS: Bool = true, isMetered: Bool? = nil
        ) {
            self.status = status
            self.outward = outward
            self.interfaces = interfaces ?? (outward.map { [$0] } ?? [])
            self.obstacle = obstacle
            self.supportsIPv4 = supportsIPv4 ?? outward?.hasIPv4 ?? false
            self.supportsIPv6 = supportsIPv6 ?? outward?.hasIPv6 ?? false
            self.hasDNS = hasDNS
            self.isMetered = isMetered
        }

        /// A path with the status `unknown`, without interfaces and DNS.
        public static let unknown = Path(.unknown, hasDNS: false)

        /// Whether the status is `satisfied`.
        public var isSatisfied: Bool { status == .satisfied }

        /// The state as one of AFNetworking's four values.
        public var reachability: Reachability {
            switch status {
            case .unknown: .unknown
            case .unsatisfied: .notReachable
            case .satisfied: outward?.kind == .cellular ? .viaWWAN : .viaWiFi
            }
        }
    }
}

extension PathMonitor.Path: CustomStringConvertible {
    /// The state in words, such as "connected by eth0 (ethernet)" and "not connected: no route".
    public var description: String {
        switch status {
        case .unknown: return "unknown" + (obstacle.map { ": \($0)" } ?? "")
        case .unsatisfied: return "not connected" + (obstacle.map { ": \($0)" } ?? "")
        case .satisfied:
            let facts =
                [outward?.kind.rawValue, isMetered == true ? "metered" : nil, hasDNS ? nil : "without DNS"]
                .compactMap { $0 }
            return "connected" + (outward.map { " by \($0.name.escapingControls)" } ?? "")
                + (facts.isEmpty ? "" : " (\(facts.joined(separator: ", ")))")
        }
    }
}

extension PathMonitor.Path.Obstacle: CustomStringConvertible {
    /// A few words, such as "no route".
    public var description: String {
        switch self {
        case .noRoute: "no route"
        case .linkDown: "the link is down"
        case .noAddress: "no address"
        case .nameNotResolved: "the name was not resolved"
        case .probeFailed: "the probe failed"
        case .noAnswer: "the kernel does not answer"
        }
    }
}
