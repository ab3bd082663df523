// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Waits for a route to the server of a request, for retries.
struct Connectivity: Sendable {
    /// The session's monitor; nil to observe the kernel's routes to the server.
    var monitor: PathMonitor?
    var resolver = EngineResolver.system
    /// Chooses the proxies of requests; nil without proxies.
    var routes: RouteTable?
    /// The rules for the interface and the local address of connections.
    var rules = SocketRules()

    /// The time after which a name that was not resolved is looked up once more.
    static let lookUpPause = Duration.seconds(1)

    /// Returns when the kernel has a route to the server of a request, or to its proxy, or when the task is cancelled.
    ///
    /// It also returns when the kernel does not answer, and when two look-ups of the name fail, a second apart,
    /// although a name server can be asked: only another attempt can show whether the server is reachable.
    /// The second look-up is for a name service that starts after the route appears.
    func wait(for request: Request, by clock: any Clock<Duration> = ContinuousClock()) async {
        guard request.options.unixSocket == nil, let monitor = monitor ?? self.monitor(for: request) else { return }
        while await mustWait(monitor, clock) {}
    }

    /// Observes a monitor until the wait is over, or until a name that was not resolved has another obstacle.
    ///
    /// - Returns: True in the second case: the iterator may have delivered the present path before, and would not
    ///   deliver it again, but the first path of another iterator is the present one.
    private func mustWait(_ monitor: PathMonitor, _ clock: any Clock<Duration>) async -> Bool {
        for await path in monitor {
            if path.isSatisfied || path.obstacle == .noAnswer { return false }
            guard path.obstacle == .nameNotResolved else { continue }
            try? await clock.wait(for: Self.lookUpPause)
            let again = await monitor.current
            let isOver = again.isSatisfied || again.obstacle == .nameNotResolved || again.obstacle == .noAnswer
            return !isOver && !Task.isCancelled
        }
        return false
    }

    /// Returns a monitor of the proxy's or server's host; nil for an invalid URL.
    private func monitor(for request: Request) -> PathMonitor? {
        guard let target = try? request.target() else { return nil }
        let proxy = (try? routes?.choice(for: request, target))?.proxy
        return PathMonitor(host: proxy?.host ?? target.host, resolver: resolver, PathSource(.outside, under: rules))
    }
}

extension Interception.Context {
    /// The wait for connectivity of the session.
    var connectivity: Connectivity { run.session.connectivity }
}
