// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension PathMonitor {
    /// A request or connection to a server, whose success shows that a path works; see ``PathMonitor/probing(_:)``.
    ///
    /// ```swift
    /// let online = PathMonitor.shared.probing(.request("https://connectivity.example.com/generate_204"))
    /// for await path in online { print(path) }
    /// ```
    public struct Probe: Sendable {
        let check: @Sendable (PathMonitor.Path) async -> Bool

        /// Creates a probe from a closure.
        ///
        /// - Parameter check: Returns whether the path works. Each call runs in a task of the iterator, outside of any
        ///   actor; the task is cancelled when the iterator ends. The closure needs a time limit of its own.
        public init(_ check: @escaping @Sendable (_ path: PathMonitor.Path) async -> Bool) { self.check = check }

        /// Sends a request, and succeeds if the response has an accepted status.
        ///
        /// The request is not retried, follows no redirect and does not use cached responses. Servers for connectivity
        /// checks respond with 204, the default status; a captive portal responds with another status. The interceptors
        /// of the session run, and its activity monitors count the request.
        ///
        /// - Parameters:
        ///   - request: The request; its time limit is 10 s unless its options set `timeouts.total`.
        ///   - session: The session that sends the request; the shared one by default.
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

        /// Opens a TCP connection, closes it, and succeeds if an address of the host has accepted it.
        ///
        /// The probe connects to all addresses at the same time, to at most 16 of them.
        ///
        /// - Parameters:
        ///   - host: A name, or an IP address.
        ///   - port: The port; the probe fails for a number that is not a port.
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
