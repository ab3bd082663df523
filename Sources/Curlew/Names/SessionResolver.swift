// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Names: a closure of the caller looks up host names. Without a closure, the engine uses the system's name service.

internal import CurlewEngine

extension Session {
    /// Looks up the addresses of host names for a session.
    ///
    /// A session uses the system's name service unless it is created with a resolver. The addresses of
    /// `tcp.addresses` take precedence. The resolver never looks up IP addresses, localhost, and the name of a server
    /// behind a proxy that looks up the name itself.
    ///
    /// ```swift
    /// let session = Session(
    ///     resolver: .custom { host in
    ///         Session.Resolver.Addresses(try await registry.addresses(of: host), lifetime: .seconds(30))
    ///     })
    /// ```
    public struct Resolver: Sendable {
        /// The addresses of a host name and their lifetime.
        public struct Addresses: Sendable, Hashable {
            /// IP addresses in the order of connection attempts; IPv6 and IPv4 always alternate (RFC 8305).
            ///
            /// An address may have a port, as in `192.0.2.7:8443` and `[2001:db8::7]:8443`. Connections then use that
            /// port in place of the port of the URL, or of the port of the proxy if the name is that of a proxy. The
            /// request and the check of the certificate stay the same. A SOCKS proxy that does not look up names gets
            /// the port of the URL. With such a port, HTTP/3 is not used.
            public var addresses: [String]
            /// The time for which the session uses the addresses, from one second to a day; 60 s unless set.
            ///
            /// A shorter time counts as one second, and a longer time counts as a day.
            public var lifetime: Duration

            /// Creates a result.
            public init(_ addresses: [String], lifetime: Duration = .seconds(60)) {
                self.addresses = addresses
                self.lifetime = lifetime
            }
        }

        let engine: EngineResolver

        init(engine: EngineResolver) { self.engine = engine }

        /// - Parameter lookUp: Gets names without a dot at their end.
        init(_ lookUp: @escaping EngineResolver.LookUp) {
            engine = .asynchronous { host in
                let name = host.withoutTrailingDot
                // localhost is always this machine (RFC 6761 §6.3).
                let isLocal = name == "localhost" || name.hasSuffix(".localhost")
                return isLocal ? await EngineResolver.system.addresses(of: name) : await lookUp(name)
            }
        }

        /// The system's name service (getaddrinfo(3)), which runs on separate threads.
        public static let system = Resolver(engine: .system)

        /// Looks up names by a closure.
        ///
        /// - Parameter lookUp: Returns the addresses of a host. The host name has A-labels in lower case and
        ///   no dot at its end. Several requests for a host share one call. The task of the call is cancelled when no
        ///   request waits for it any more. The timeout `connect` includes the time of the call. A thrown error, an
        ///   empty result or an invalid IP address fails the requests with `.cannotResolve`. The message contains the
        ///   description of the error.
        public static func custom(
            _ lookUp: @escaping @Sendable (_ host: String) async throws -> Addresses
        ) -> Resolver {
            Resolver { host in
                do {
                    let found = try await lookUp(host)
                    var endpoints: [SocketAddress] = []
                    for address in found.addresses {
                        guard let endpoint = SocketAddress(parsing: address) else {
                            let text = address.escapingControls
                            return .failure(.unknown("the resolver returned “\(text)”, not an IP address"))
                        }
                        endpoints.append(endpoint)
                    }
                    if endpoints.isEmpty { return .failure(.unknown("the resolver found no address")) }
                    return .success(EngineResolver.Addresses(endpoints, lifetime: found.lifetime.engineTime))
                } catch {
                    return .failure(.unknown("\(error)".escapingControls))
                }
            }
        }
    }
}

extension SocketAddress {
    /// Parses an IP address with or without a port; an IPv6 address with a port is in brackets.
    init?(parsing text: String) {
        if let address = HostName.bytes(ofAddress: text).flatMap(HostName.address) {
            self.init(address)
            return
        }
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        let digits = text[text.utf8.index(after: colon)...]
        var host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        if isBracketed { host = host.dropFirst().dropLast() }
        guard isBracketed == host.utf8.contains(UInt8(ascii: ":")), digits.utf8.allSatisfy({ 48...57 ~= $0 }),
            let port = UInt16(digits), port > 0,
            let address = HostName.bytes(ofAddress: String(host)).flatMap(HostName.address)
        else { return nil }
        self.init(address, port: port)
    }
}
