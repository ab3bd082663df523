// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension SessionConfiguration {
    /// How TCP connections are made and watched.
    ///
    /// Small writes are never held back (`TCP_NODELAY`). What the kernel refuses stays as the system has it.
    ///
    /// ```swift
    /// configuration.tcp.keepAlive = .init(idle: .seconds(30))
    /// configuration.tcp.addressOrder = .roundRobin
    /// ```
    public struct TCP: Sendable, Hashable {
        /// Probes on connections over which nothing comes, after which a peer that does not answer counts as lost
        /// (RFC 9293 §3.8.4).
        public struct KeepAlive: Sendable, Hashable {
            /// How long a connection is silent before the first probe, from 1 to 32,767 s, without fractions of a second;
            /// 60 s unless set.
            public var idle: Duration
            /// How long after a probe comes the next, from 1 to 32,767 s, without fractions of a second; 10 s unless set.
            public var interval: Duration
            /// How many probes in a row stay unanswered before the connection is lost, from 1 to 127; 6 unless set.
            public var count: Int

            /// Probes, each choice with its default: a peer that is gone is noticed after two minutes.
            public init(idle: Duration = .seconds(60), interval: Duration = .seconds(10), count: Int = 6) {
                self.idle = idle
                self.interval = interval
                self.count = count
            }
        }

        /// A way to choose among several addresses of a host.
        ///
        /// It orders each family for itself; IPv6 and IPv4 are tried by turns in any case (RFC 8305), beginning with
        /// the family that the look-up put first (RFC 6724).
        public enum AddressOrder: String, Sendable, Hashable, Codable, CaseIterable {
            /// As the look-up found them, for each connection.
            case asResolved
            /// By chance, for each connection anew.
            case shuffled
            /// For each new connection the next one comes first, so that a host's connections spread evenly.
            case roundRobin
        }

        /// The probes on silent connections; nil, the default, for none.
        ///
        /// `timeouts.idle` ends silent transfers in any case, and `limits.idleConnectionLifetime` unused connections.
        public var keepAlive: KeepAlive?
        /// How long sent bytes may stay unacknowledged, or unsent because the peer takes none, before the connection is
        /// lost (`TCP_USER_TIMEOUT`, RFC 5482), from 1 ms to 24 days; nil, the default, for the system's choice of about
        /// 15 minutes.
        ///
        /// It counts while connecting too, and takes the place of `keepAlive.count`.
        public var userTimeout: Duration?
        /// Whether a request may travel with the first packet of a connection to a host that is known (TCP Fast Open,
        /// RFC 7413); false unless set.
        ///
        /// The kernel must allow it (`net.ipv4.tcp_fastopen`), else connections are made as ever. To a known host it
        /// counts as connected before anything was sent: what is wrong then fails the request itself, and the host's
        /// other addresses are not tried.
        public var fastOpen: Bool
        /// Which of a host's addresses a connection tries first; as resolved unless set.
        public var addressOrder: AddressOrder
        /// Where hosts are instead of where the look-up would find them: IP addresses by host, as `/etc/hosts` has them.
        ///
        /// The host stays what it is for certificates, the `Host` field and everything else.
        public var addresses: [String: [String]]

        /// The choices, each with its default.
        public init(
            keepAlive: KeepAlive? = nil, userTimeout: Duration? = nil, fastOpen: Bool = false,
            addressOrder: AddressOrder = .asResolved, addresses: [String: [String]] = [:]
        ) {
            self.keepAlive = keepAlive
            self.userTimeout = userTimeout
            self.fastOpen = fastOpen
            self.addressOrder = addressOrder
            self.addresses = addresses
        }

        /// The rule that a member breaks; nil when none does.
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

extension SessionConfiguration.TCP: Codable {
    private enum Keys: CodingKey {
        case keepAlive, userTimeout, fastOpen, addressOrder, addresses
    }

    /// Decodes the members that are there; times are seconds.
    /// - Throws: `DecodingError.dataCorrupted` for an unknown order and for a negative or endless time.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        keepAlive = try container.decodeIfPresent(KeepAlive.self, forKey: .keepAlive)
        userTimeout = try container.seconds(.userTimeout)
        fastOpen = try container.decodeIfPresent(Bool.self, forKey: .fastOpen) ?? fastOpen
        addressOrder = try container.decodeIfPresent(AddressOrder.self, forKey: .addressOrder) ?? addressOrder
        addresses = try container.decodeIfPresent([String: [String]].self, forKey: .addresses) ?? addresses
    }

    /// Encodes times as seconds.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(keepAlive, forKey: .keepAlive)
        try container.encode(userTimeout?.inSeconds, forKey: .userTimeout)
        try container.encode(fastOpen, forKey: .fastOpen)
        try container.encode(addressOrder, forKey: .addressOrder)
        try container.encode(addresses, forKey: .addresses)
    }
}

extension SessionConfiguration.TCP.KeepAlive: Codable {
    private enum Keys: CodingKey {
        case idle, interval, count
    }

    /// Decodes the members that are there; times are seconds.
    /// - Throws: `DecodingError.dataCorrupted` for a negative or endless time.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        idle = try container.seconds(.idle) ?? idle
        interval = try container.seconds(.interval) ?? interval
        count = try container.decodeIfPresent(Int.self, forKey: .count) ?? count
    }

    /// Encodes times as seconds.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(idle.inSeconds, forKey: .idle)
        try container.encode(interval.inSeconds, forKey: .interval)
        try container.encode(count, forKey: .count)
    }
}
