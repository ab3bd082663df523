// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension PathMonitor {
    /// The network connection of the machine, or the way to an address or a host, at one instant.
    public struct Path: Sendable, Hashable {
        /// The kind of an interface.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The loopback interface, which stays within the machine.
            case loopback
            /// A cable, or a virtual interface that looks like one, as in virtual machines and containers.
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
            /// Whether the interface has an IPv4 address that is not restricted to its link.
            public var hasIPv4: Bool
            /// Whether the interface has an IPv6 address that is not restricted to its link.
            public var hasIPv6: Bool

            /// Whether the interface has an IP address that is not restricted to its link.
            public var hasAddress: Bool { hasIPv4 || hasIPv6 }

            /// Creates an interface, for tests and other sources of paths.
            ///
            /// - Parameters:
            ///   - name: The kernel's name.
            ///   - kind: The kind; ethernet unless given.
            ///   - isRunning: Whether it is up and connected; true unless given.
            ///   - hasIPv4: Whether it has an IPv4 address; true unless given.
            ///   - hasIPv6: Whether it has an IPv6 address; false unless given.
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

        /// Whether there is a way.
        public enum Status: String, Sendable, Hashable, CaseIterable {
            /// The answer is not known: the first look-up or probe has not ended, or the system does not permit to ask
            /// the kernel.
            case unknown
            /// There is no way; ``Path/obstacle`` is the reason.
            case unsatisfied
            /// There is a way.
            case satisfied
        }

        /// The reason why a path is unsatisfied or unknown.
        public enum Obstacle: String, Sendable, Hashable, CaseIterable {
            /// The kernel has no route.
            case noRoute
            /// The interface of the route is down or not connected.
            case linkDown
            /// The machine has no address from which the kernel would send.
            case noAddress
            /// The look-up of the host's name failed, although the machine has a way to the outside.
            case nameNotResolved
            /// The probe failed.
            case probeFailed
            /// The kernel does not answer, because the system forbids netlink sockets or has no free descriptors; the
            /// status is unknown.
            case noAnswer
        }

        /// The four states of AFNetworking's `AFNetworkReachabilityStatus`, with its numbers and texts.
        public enum Reachability: Int, Sendable, Hashable, CaseIterable, CustomStringConvertible {
            /// The answer is not known.
            case unknown = -1
            /// There is no way.
            case notReachable = 0
            /// The way uses a mobile network.
            case viaWWAN = 1
            /// The way uses another network, with or without cables.
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

        /// Whether there is a way.
        public var status: Status
        /// The reason why the path is unsatisfied, or why it stays unknown; nil for other states.
        public var obstacle: Obstacle?
        /// All interfaces of the machine, sorted by name.
        public var interfaces: [Interface]
        /// The interface of the way; nil without a way.
        ///
        /// It is the loopback interface for an address of this machine. If IPv4 and IPv6 use different interfaces, it is
        /// that of the machine's IPv4 way, or that of the first address of a host.
        public var outward: Interface?
        /// Whether there is a way by IPv4.
        public var supportsIPv4: Bool
        /// Whether there is a way by IPv6.
        public var supportsIPv6: Bool
        /// Whether the configuration of the system's resolver names a server (resolv.conf(5)).
        public var hasDNS: Bool
        /// Whether the machine's connection is metered; nil when the system does not say.
        ///
        /// NetworkManager says so, also when it only guesses. Machines without NetworkManager do not say.
        public var isMetered: Bool?

        /// Creates a path, for tests and other sources of paths.
        ///
        /// - Parameters:
        ///   - status: Whether there is a way.
        ///   - outward: The interface of the way; nil unless given.
        ///   - interfaces: All interfaces; `outward` alone unless given.
        ///   - obstacle: The reason why the path is unsatisfied or unknown; nil unless given.
        ///   - supportsIPv4: Whether there is a way by IPv4; by default whether `outward` has such an address.
        ///   - supportsIPv6: Whether there is a way by IPv6; by default whether `outward` has such an address.
        ///   - hasDNS: Whether a name server is known; true unless given.
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

        /// A path about which nothing is known.
        public static let unknown = Path(.unknown, hasDNS: false)

        /// Whether there is a way.
        public var isSatisfied: Bool { status == .satisfied }

        /// The state in the terms of AFNetworking.
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
    /// The way in words, such as "connected by eth0 (ethernet)" and "not connected: no route".
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
