// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Session.Configuration {
    /// How TCP connections are opened and monitored.
    ///
    /// Small writes are never delayed (`TCP_NODELAY`). Options that the kernel rejects keep the system's value.
    ///
    /// ```swift
    /// configuration.tcp.keepAlive = .init(idle: .seconds(30))
    /// configuration.tcp.addressOrder = .roundRobin
    /// ```
    public struct TCP: Sendable, Hashable {
        /// Probes on silent connections, after which a peer that does not respond counts as lost (RFC 9293 §3.8.4).
        public struct KeepAlive: Sendable, Hashable {
            /// The silence before the first probe, from 1 to 32,767 s, without fractions of a second; 60 s unless set.
            public var idle: Duration
            /// The time between two probes, from 1 to 32,767 s, without fractions of a second; 10 s unless set.
            public var interval: Duration
            /// The number of probes in a row without a response after which the connection is lost, from 1 to 127; 6
            /// unless set.
            public var count: Int

            /// Creates probe settings; by default a lost peer is noticed after two minutes.
            public init(idle: Duration = .seconds(60), interval: Duration = .seconds(10), count: Int = 6) {
                self.idle = idle
                self.interval = interval
                self.count = count
            }
        }

        /// Interfaces of this machine, by name or kind.
        public enum Interfaces: Sendable, Hashable {
            /// The interface with this name. A name that ends in "*", such as `wwan*`, covers all names with this
            /// prefix.
            case named(String)
            /// Mobile broadband.
            case cellular
            /// Wireless networks (IEEE 802.11).
            case wifi
            /// Wired networks, and virtual Ethernet interfaces.
            case ethernet
        }

        /// A way to choose among several addresses of a host.
        ///
        /// The choice orders the addresses of each family. IPv6 and IPv4 alternate in any case (RFC 8305), beginning
        /// with the family that the look-up put first (RFC 6724).
        public enum AddressOrder: String, Sendable, Hashable, Codable, CaseIterable {
            /// The order of the look-up, for each connection.
            case asResolved
            /// A random order, for each connection.
            case shuffled
            /// Each new connection begins with the next address, so that a host's connections spread evenly.
            case roundRobin
        }

        /// The probes on silent connections; nil, the default, for no probes.
        ///
        /// `timeouts.idle` ends silent transfers in any case, and `limits.idleConnectionLifetime` closes unused
        /// connections.
        public var keepAlive: KeepAlive?
        /// How long sent bytes may stay unacknowledged, or unsent because the peer accepts no more, before the
        /// connection is lost (`TCP_USER_TIMEOUT`, RFC 5482), from 1 ms to 24 days; nil, the default, for the system's
        /// limit of about 15 minutes.
        ///
        /// The limit also applies while connecting, and replaces `keepAlive.count`.
        public var userTimeout: Duration?
        /// Whether a request may be sent in the first packet of a connection to a known host (TCP Fast Open, RFC 7413);
        /// false unless set.
        ///
        /// The kernel must allow it (`net.ipv4.tcp_fastopen`), otherwise connections are opened as usual. A connection
        /// to a known host counts as connected before any byte was sent: a failure to connect then fails the request
        /// itself, and the host's other addresses are not tried.
        public var fastOpen: Bool
        /// The address of a host that a connection tries first; as resolved unless set.
        public var addressOrder: AddressOrder
        /// The time after which a connection also attempts the next address of the host, if the last attempt has not
        /// succeeded or failed (RFC 8305 §5), from 10 ms to 2 s; 250 ms unless set.
        ///
        /// IPv6 and IPv4 alternate. With `fastOpen`, at most one address of each family is attempted at a time.
        public var attemptDelay: Duration
        /// The name of the interface for connections; nil, the default, for the system's choice.
        ///
        /// Before Linux 5.7, this requires CAP_NET_RAW. The setting has no effect on Unix sockets.
        public var interface: String?
        /// The local IP address of connections; nil, the default, for the system's choice.
        ///
        /// Connections then reach only addresses of the same family, IPv4 or IPv6.
        public var localAddress: String?
        /// Interfaces that no connection may use, such as `[.cellular, .named("wwan*")]`; empty unless set.
        ///
        /// The kernel's route to each address determines the interface. With a proxy, the route to the proxy counts.
        public var forbiddenInterfaces: [Interfaces]
        /// The traffic class of the packets that carry requests; ``Request/TrafficClass/standard`` unless set.
        public var trafficClass: Request.TrafficClass
        /// The IP addresses of hosts, by host, used instead of a look-up, as in `/etc/hosts`.
        ///
        /// The host name stays the same for certificates, the `Host` field and everything else.
        public var addresses: [String: [String]]

        /// Creates settings; each has its default unless given.
        public init(
            keepAlive: KeepAlive? = nil, userTimeout: Duration? = nil, fastOpen: Bool = false,
            addressOrder: AddressOrder = .asResolved, addresses: [String: [String]] = [:],
            trafficClass: Request.TrafficClass = .standard, attemptDelay: Duration = .milliseconds(250),
            interface: String? = nil, localAddress: String? = nil, forbiddenInterfaces: [Interfaces] = []
        ) {
            self.keepAlive = keepAlive
            self.userTimeout = userTimeout
            self.fastOpen = fastOpen
            self.addressOrder = addressOrder
            self.addresses = addresses
            self.trafficClass = trafficClass
            self.attemptDelay = attemptDelay
            self.interface = interface
            self.localAddress = localAddress
            self.forbiddenInterfaces = forbiddenInterfaces
        }

        /// The rule that the first invalid member breaks; nil when all are valid.
        var firstBrokenRule: String? {
            if let keepAlive {
                for (name, time) in [("idle", keepAlive.idle), ("interval", keepAlive.interval)]
                where time < .seconds(1) || time > .seconds(32_767) {
                    return "tcp.keepAlive.\(name) must be from 1 s to 32767 s"
                }
                if !(1...127).contains(keepAlive.count) { return "tcp.keepAlive.count must be from 1 to 127" }
            }
            if let userTimeout, userTimeout < .milliseconds(1) || userTimeout > .milliseconds(Int32.max) {
                return "tcp.userTimeout must be from 1 ms to 24 days"
            }
            if attemptDelay < .milliseconds(10) || attemptDelay > .seconds(2) {
                return "tcp.attemptDelay must be from 10 ms to 2 s"
            }
            // The kernel's limit is 16 bytes, including a NUL.
            if let interface, !(1...15).contains(interface.utf8.count) || interface.utf8.contains(0) {
                return "tcp.interface must have from 1 to 15 bytes"
            }
            if let localAddress, !HostName.isAddress(localAddress) { return "tcp.localAddress must be an IP address" }
            if !trafficClass.isValid { return "tcp.trafficClass must be from 0 to 63" }
            for (host, addresses) in addresses {
                guard HostName.key(host) != nil else { return "“\(host.escapingControls)” in tcp.addresses is no host" }
                guard !addresses.isEmpty, addresses.allSatisfy(HostName.isAddress) else {
                    return "tcp.addresses must have IP addresses for \(host)"
                }
            }
            return nil
        }
    }
}

extension Session.Configuration.TCP: Codable {
    enum Keys: CodingKey, CaseIterable {
        case keepAlive, userTimeout, fastOpen, addressOrder, addresses, trafficClass, attemptDelay, interface
        case localAddress, forbiddenInterfaces
    }

    /// Decodes times as seconds; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for an unknown order, and for a time that is negative or above about 31
    ///   years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        keepAlive = try container.decodeIfPresent(KeepAlive.self, forKey: .keepAlive)
        userTimeout = try container.seconds(.userTimeout)
        fastOpen = try container.decodeIfPresent(Bool.self, forKey: .fastOpen) ?? fastOpen
        addressOrder = try container.decodeIfPresent(AddressOrder.self, forKey: .addressOrder) ?? addressOrder
        addresses = try container.decodeIfPresent([String: [String]].self, forKey: .addresses) ?? addresses
        trafficClass = try container.decodeIfPresent(Request.TrafficClass.self, forKey: .trafficClass) ?? trafficClass
        attemptDelay = try container.seconds(.attemptDelay) ?? attemptDelay
        interface = try container.decodeIfPresent(String.self, forKey: .interface)
        localAddress = try container.decodeIfPresent(String.self, forKey: .localAddress)
        forbiddenInterfaces =
            try container.decodeIfPresent([Interfaces].self, forKey: .forbiddenInterfaces) ?? forbiddenInterfaces
    }

    /// Encodes times as seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(keepAlive, forKey: .keepAlive)
        try container.encode(userTimeout?.inSeconds, forKey: .userTimeout)
        try container.encode(fastOpen, forKey: .fastOpen)
        try container.encode(addressOrder, forKey: .addressOrder)
        try container.encode(addresses, forKey: .addresses)
        try container.encode(trafficClass, forKey: .trafficClass)
        try container.encode(attemptDelay.inSeconds, forKey: .attemptDelay)
        try container.encode(interface, forKey: .interface)
        try container.encode(localAddress, forKey: .localAddress)
        try container.encode(forbiddenInterfaces, forKey: .forbiddenInterfaces)
    }
}

extension Session.Configuration.TCP.KeepAlive: Codable {
    private enum Keys: CodingKey {
        case idle, interval, count
    }

    /// Decodes times as seconds; missing members take their defaults.
    /// - Throws: `DecodingError.dataCorrupted` for a time that is negative or above about 31 years.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        idle = try container.seconds(.idle) ?? idle
        interval = try container.seconds(.interval) ?? interval
        count = try container.decodeIfPresent(Int.self, forKey: .count) ?? count
    }

    /// Encodes times as seconds.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(idle.inSeconds, forKey: .idle)
        try container.encode(interval.inSeconds, forKey: .interval)
        try container.encode(count, forKey: .count)
    }
}

extension Session.Configuration.TCP.Interfaces: Codable {
    /// Decodes "cellular", "wifi", "ethernet", or "name:" and a name.
    /// - Throws: `DecodingError.dataCorrupted` for any other text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        switch text {
        case "cellular": self = .cellular
        case "wifi": self = .wifi
        case "ethernet": self = .ethernet
        case _ where text.hasPrefix("name:") && text.count > 5: self = .named(String(text.dropFirst(5)))
        default:
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "Use “cellular”, “wifi”, “ethernet”, or “name:” and a name.")
        }
    }

    /// Encodes the text that `init(from:)` decodes.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .named(let name): try container.encode("name:" + name)
        case .cellular: try container.encode("cellular")
        case .wifi: try container.encode("wifi")
        case .ethernet: try container.encode("ethernet")
        }
    }
}
