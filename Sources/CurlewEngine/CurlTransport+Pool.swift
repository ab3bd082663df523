// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The connections and transfers of one server at an instant.
package struct PoolCounts: Sendable {
    package var host: String
    package var port: UInt16
    package var isSecure: Bool
    package var route: Route.Hop?
    /// The path or the abstract name of a Unix socket; nil for another route.
    package var socketName: String?
    /// The open connections, and those of them that no transfer uses.
    package var open: Int
    package var idle: Int
    /// The transfers with a slot, and those that wait for one.
    package var running: Int
    package var queued: Int
}

extension CurlTransport {
    /// Returns the number of idle connections to the server of a URL, and whether transfers share its connections.
    package func idleConnections(to url: PlannedURL) -> (count: Int, isShared: Bool) {
        guard let origin = origins.url(for: url)?.origin else { return (0, false) }
        return (sockets.countsByOrigin[ObjectIdentifier(origin)]?.idle ?? 0, origin.isShared)
    }

    /// The servers that have connections or transfers.
    package var pool: [PoolCounts] {
        let counts = sockets.countsByOrigin
        return origins.all.compactMap { origin in
            let (open, idle) = counts[ObjectIdentifier(origin)] ?? (0, 0)
            guard open + origin.active + origin.waiting > 0 else { return nil }
            return PoolCounts(
                host: origin.host, port: origin.port, isSecure: origin.isSecure, route: origin.route?.hop,
                socketName: origin.route?.socketName, open: open, idle: idle, running: origin.active,
                queued: origin.waiting)
        }
    }
}
