// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// An address to which a monitor asks the kernel for a route.
struct PathTarget: Sendable, Hashable {
    /// 4 or 16 bytes in network order.
    let bytes: [UInt8]
    /// The name of the interface of a link-local address; nil for other addresses.
    let link: String?

    init(_ bytes: [UInt8], link: String? = nil) {
        self.bytes = bytes
        self.link = link
    }

    /// Parses an IP address; an IPv6 address may have the name of an interface after "%" (RFC 4007 §11).
    init?(address: String) {
        let parts = address.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let bytes = HostName.bytes(ofAddress: String(first)),
            parts.count == 1 || bytes.count == 16 && !parts[1].isEmpty
        else { return nil }
        self.init(bytes, link: parts.count == 2 ? String(parts[1]) : nil)
    }

    /// Public addresses of both families, to which the kernel has a route if it has a route to the Internet.
    ///
    /// They belong to a root server (a.root-servers.net, IANA's root hints) and change at most once in decades. The
    /// kernel's answer for an address also considers routes that cover the Internet in two halves, and tables that
    /// routing rules select, such as those of VPNs; a search for a default route would miss both.
    static let outside = [
        PathTarget([198, 41, 0, 4]),
        PathTarget([0x20, 0x01, 0x05, 0x03, 0xba, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0x30]),
    ]

    var isIPv6: Bool { bytes.count == 16 }

    var isLinkLocal: Bool { Self.isLinkLocal(bytes) }

    /// Whether the address is that of the loopback interface (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
    var isLoopback: Bool { isIPv6 ? bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1 : bytes[0] == 127 }

    /// Whether an address is valid on one link only (RFC 3927, RFC 4291 §2.5.6).
    static func isLinkLocal(_ bytes: [UInt8]) -> Bool {
        bytes.count == 4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }
}

extension PathMonitor.Path {
    /// The routes that a path is about.
    enum Scope: Sendable, Hashable {
        /// The routes to the public Internet, except over the loopback interface.
        case outside
        case addresses([PathTarget])

        var targets: [PathTarget] {
            switch self {
            case .outside: PathTarget.outside
            case .addresses(let targets): targets
            }
        }
    }

    /// Creates the path that follows from the state of the interfaces and the kernel's routes.
    ///
    /// - Parameters:
    ///   - state: The interfaces.
    ///   - scope: The routes that the path is about.
    ///   - answers: The kernel's answer for each of the targets of `scope`, in their order.
    init(_ state: LinkState, _ scope: Scope, _ answers: [KernelRoute.Answer]) {
        self.init(.unknown, interfaces: state.links.map { Interface($0) }, hasDNS: !state.nameServers.isEmpty)
        isMetered = state.isMetered
        guard state.isKnown else {
            obstacle = .noAnswer
            return
        }
        var obstacles: [Obstacle] = []
        for (target, answer) in zip(scope.targets, answers) {
            switch answer {
            case .failed: obstacles.append(.noAnswer)
            case .noRoute: obstacles.append(.noRoute)
            case .route(let route):
                let link = interfaces.first { $0.name == route.link }
                if let obstacle = obstacle(on: route, over: link, to: target, scope) {
                    obstacles.append(obstacle)
                    continue
                }
                status = .satisfied
                if outward == nil { outward = link }
                if target.isIPv6 { supportsIPv6 = true } else { supportsIPv4 = true }
            }
        }
        guard status != .satisfied, !obstacles.isEmpty else { return }
        // Report a missing answer, else the obstacle of the route that is closest to being usable.
        obstacle = [.noAnswer, .noAddress, .linkDown, .noRoute].first { obstacles.contains($0) }
        status = obstacle == .noAnswer ? .unknown : .unsatisfied
    }

    /// Whether a tunnel to the Internet can work: another kind of interface is running with an address, or there are
    /// only tunnels.
    ///
    /// VPNs keep their routes when the network below is gone.
    private var hasCarrier: Bool {
        let carriers = interfaces.filter { $0.kind != .vpn && $0.kind != .loopback }
        return carriers.isEmpty || carriers.contains { $0.isRunning && $0.hasAddress }
    }

    /// Returns the reason why a route is not usable; nil for a usable route.
    private func obstacle(
        on route: KernelRoute, over link: Interface?, to target: PathTarget, _ scope: Scope
    ) -> Obstacle? {
        if scope != .outside, route.isLocal { return nil }
        guard let link, scope != .outside || link.kind != .loopback else { return .noRoute }
        guard link.isRunning, scope != .outside || link.kind != .vpn || hasCarrier else { return .linkDown }
        if route.source.allSatisfy({ $0 == 0 }) { return .noAddress }
        return PathTarget.isLinkLocal(route.source) && !target.isLinkLocal ? .noAddress : nil
    }
}

extension PathMonitor.Path.Interface {
    init(_ link: LinkState.Link) {
        self.init(
            link.name, kind: PathMonitor.Path.Kind(sameAs: link.kind), isRunning: link.isRunning,
            hasIPv4: link.hasIPv4, hasIPv6: link.hasIPv6)
    }
}
