// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension PathMonitor {
    /// A question to a server, whose answer shows that a path works; see ``PathMonitor/probing(_:)``.
    ///
    /// ```swift
    /// let online = PathMonitor.shared.probing(.request("https://connectivity.example.com/generate_204"))
    /// for await path in online { print(path) }
    /// ```
    public struct Probe: Sendable {
        let check: @Sendable (PathMonitor.Path) async -> Bool

        /// Creates a probe from a closure.
        ///
        /// - Parameter check: Returns whether the path works. It runs in a task of the reader, which is cancelled when
        ///   the reader ends. It needs a time limit of its own.
        public init(_ check: @escaping @Sendable (_ path: PathMonitor.Path) async -> Bool) { self.check = check }

        /// Sends a request, without retries, redirects and caches, and accepts some statuses.
        ///
        /// The default status is the one of servers for this purpose: a portal that intercepts requests responds with
        /// another one.
        ///
        /// - Parameters:
        ///   - request: The request; it ends after 10 s unless its options set `timeouts.total`.
        ///   - session: The session; the shared one by default.
        ///   - statuses: The accepted statuses; 204 by default.
        public static func request(
            _ request: Request, by session: Session = .shared, accepting statuses: StatusSet = [.noContent]
        ) -> Probe {
            var request = request
            request.options.retry = .never
            request.options.redirects = .never
            request.options.cache = .reloadFromOrigin
            request.options.coalesces = false
            if request.options.timeouts.total == nil { request.options.timeouts.total = .seconds(10) }
            return Probe { [request] _ in
                guard let (_, head) = try? await session.data(for: request) else { return false }
                return statuses.contains(head.status)
            }
        }

        /// Opens a TCP connection and closes it.
        ///
        /// - Parameters:
        ///   - host: A name, or an IP address.
        ///   - port: The port.
        ///   - limit: The time for all addresses of the host together, after the look-up; 5 s by default.
        ///   - resolver: Looks up the name; the system's name service by default.
        public static func connection(
            to host: String, port: Int, within limit: Duration = .seconds(5), resolver: Session.Resolver = .system
        ) -> Probe {
            let name = HostName.key(host) ?? host
            let engine = resolver.engine
            return Probe { _ in
                var addresses = HostName.bytes(ofAddress: name).map { [$0] } ?? []
                if addresses.isEmpty, case .success(let found)? = await engine.addressesUnlessCancelled(of: name) {
                    addresses = found.endpoints.compactMap { HostName.bytes(ofAddress: $0.ip) }
                }
                guard let port = UInt16(exactly: port) else { return false }
                return await ConnectionProbe.reaches(addresses, port: port, within: limit.engineTime)
            }
        }
    }
}
