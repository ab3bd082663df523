// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The kernel's answers about the routes of a scope, or those of a test.
struct PathSource: Sendable {
    typealias Ask = @Sendable (PathTarget) -> KernelRoute.Answer

    let scope: PathMonitor.Path.Scope
    let monitor: KernelMonitor<LinkState>
    let ask: Ask

    init(
        _ scope: PathMonitor.Path.Scope, _ monitor: KernelMonitor<LinkState> = LinkState.monitor,
        ask: @escaping Ask = Self.askKernel
    ) {
        self.scope = scope
        self.monitor = monitor
        self.ask = ask
    }

    /// Returns a source with the same kernel and another scope.
    func to(_ scope: PathMonitor.Path.Scope) -> PathSource { PathSource(scope, monitor, ask: ask) }

    /// Creates a source for connections that follow rules for their interface and local address.
    init(_ scope: PathMonitor.Path.Scope, under rules: SocketRules) {
        self.init(scope) { Self.answer($0, under: rules) }
    }

    private static let askKernel: Ask = { answer($0, under: SocketRules()) }

    private static func answer(_ target: PathTarget, under rules: SocketRules) -> KernelRoute.Answer {
        let link = target.link.map { KernelRoute.number(ofLink: $0) }
        // The interface does not exist. Without an interface, connect(2) refuses an IPv6 address that is valid on one
        // link only, although the kernel names a route to it.
        if link == 0 || link == nil && target.isIPv6 && target.isLinkLocal { return .noRoute }
        return rules.route(to: target.bytes, on: link ?? 0)
    }

    /// Returns the path that follows from a state of the interfaces and from the kernel's present routes.
    func path(_ state: LinkState) -> PathMonitor.Path {
        PathMonitor.Path(state, scope, state.isKnown ? scope.targets.map(ask) : [])
    }

    /// Whether a failed look-up says something about the name: a name server can be asked.
    ///
    /// The kernel has a route to the Internet or to a name server. A name server on this machine needs an interface
    /// that is connected.
    func hasNameService(_ state: LinkState) -> Bool {
        if to(.outside).path(state).isSatisfied { return true }
        let servers = state.nameServers.compactMap { PathTarget(address: $0) }
        let isConnected = state.links.contains { $0.kind != .loopback && $0.isRunning && ($0.hasIPv4 || $0.hasIPv6) }
        return servers.contains { server in
            server.isLoopback ? isConnected : to(.addresses([server])).path(state).isSatisfied
        }
    }

    /// Returns the present path, and the newest one after each change.
    func paths() -> AsyncStream<PathMonitor.Path> {
        .newest { newest in
            let number = monitor.observe { newest.send(path($0)) }
            return { monitor.end(number) }
        }
    }

    /// Returns the present state of the interfaces, and the newest one after each report of the kernel.
    func states() -> AsyncStream<LinkState> {
        .newest { newest in
            let number = monitor.observe { newest.send($0) }
            return { monitor.end(number) }
        }
    }
}
