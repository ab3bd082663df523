// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Waits for the way to the server of a request, for retries.
struct Connectivity: Sendable {
    /// The monitor of a session; nil to observe the way to the server itself.
    let monitor: PathMonitor?
    let resolver: EngineResolver
    /// Chooses the proxies of requests; nil without proxies.
    let routes: RouteTable?

    /// Returns when there is a way to the server of a request, or to its proxy, or when the task is cancelled.
    ///
    /// It also returns when the name is not resolved although the machine has a way to the outside, and when the system
    /// does not permit to ask the kernel: then only another request can show whether the server is reachable.
    func wait(for request: Request) async {
        guard request.options.unixSocket == nil, let monitor = monitor ?? self.monitor(for: request) else { return }
        for await path in monitor {
            if path.isSatisfied || path.obstacle == .nameNotResolved || path.obstacle == .noAnswer { return }
        }
    }

    /// Returns a monitor for the first connection of a request; nil for a request without a network.
    private func monitor(for request: Request) -> PathMonitor? {
        guard let target = try? request.target() else { return nil }
        let proxy = (try? routes?.choice(for: request, target))?.proxy
        return PathMonitor(host: proxy?.host ?? target.host, resolver: resolver)
    }
}
