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

        /// The system's name service (getaddrinfo(3)), which runs on separate threads.
        public static let system = Resolver(engine: .system)

        /// Looks up names by a closure.
        ///
        /// - Parameter lookUp: Returns the addresses of a host; the host name consists of A-labels in lower case.
        ///   Several requests for a host share one call. The task of the call is cancelled when no request waits for it
        ///   any more. The timeout `connect` includes the time of the call. A thrown error, an empty result or an
        ///   invalid IP address fails the requests with `.cannotResolve`. The message contains the description of the
        ///   error.
        public static func custom(
            _ lookUp: @escaping @Sendable (_ host: String) async throws -> Addresses
        ) -> Resolver {
            Resolver(
                engine: .asynchronous { host in
                    do {
                        let found = try await lookUp(host)
                        if let invalid = found.addresses.first(where: { !HostName.isAddress($0) }) {
                            return .failure(
                                .unknown("the resolver returned “\(invalid.escapingControls)”, not an IP address"))
                        }
                        guard !found.addresses.isEmpty else {
                            return .failure(.unknown("the resolver found no address"))
                        }
                        return .success(
                            EngineResolver.Addresses(found.addresses, lifetime: found.lifetime.engineTime))
                    } catch {
                        return .failure(.unknown("\(error)".escapingControls))
                    }
                })
        }
    }
}
