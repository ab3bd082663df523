// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reachability: whether the machine has a way out. A hint for user interfaces and for waiting; the only proof that a
// server can be reached is to ask it.

internal import CurlewEngine

/// How the machine is connected at one instant.
public struct NetworkPath: Sendable, Hashable, CustomStringConvertible {
    /// What an interface is.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// Within the machine.
        case loopback
        /// A cable, or what looks like one: virtual machines and containers too.
        case ethernet
        /// A wireless network.
        case wifi
        /// A mobile network.
        case cellular
        /// Something else, such as a tunnel.
        case other
    }

    /// An interface of the machine.
    public struct Interface: Sendable, Hashable {
        /// The kernel's name, such as `eth0`.
        public let name: String
        /// What it is.
        public let kind: Kind
        /// Whether it is up and connected.
        public let isRunning: Bool
        /// Whether it has an IP address.
        public let hasAddress: Bool
    }

    /// Every interface, by name.
    public let interfaces: [Interface]
    /// The interface a default route leads through, when it is running and has an address; nil without one.
    public let outward: Interface?

    /// Whether there is a way out of the machine.
    public var isSatisfied: Bool { outward != nil }

    /// The outward interface in words.
    public var description: String {
        outward.map { "connected by \($0.name) (\($0.kind.rawValue))" } ?? "not connected"
    }
}

/// The machine's connection, as a sequence: the state at once, then at each change, the newest only.
///
/// The kernel is watched on one thread for the process while somebody iterates, and not at all otherwise; no privilege
/// is needed.
///
/// ```swift
/// for await path in Session.shared.path where path.isSatisfied { break }
/// ```
public struct PathMonitor: AsyncSequence, Sendable {
    /// What it yields.
    public typealias Element = NetworkPath
    /// It never fails.
    public typealias Failure = Never

    init() {}

    /// Begins to watch; the iterator's end, or its task's cancellation, ends that.
    public func makeAsyncIterator() -> AsyncStream<NetworkPath>.Iterator {
        let (stream, continuation) = AsyncStream<NetworkPath>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = LinkMonitor.shared.observe { continuation.yield(NetworkPath($0)) }
        continuation.onTermination = { _ in LinkMonitor.shared.end(number) }
        return stream.makeAsyncIterator()
    }
}

extension NetworkPath {
    init(_ state: LinkState) {
        interfaces = state.links.map { Interface($0) }
        outward = state.links.first { $0.name == state.outward }.map { Interface($0) }
    }
}

extension NetworkPath.Interface {
    fileprivate init(_ link: LinkState.Link) {
        name = link.name
        isRunning = link.isRunning
        hasAddress = link.hasAddress
        kind =
            switch link.kind {
            case .loopback: .loopback
            case .ethernet: .ethernet
            case .wifi: .wifi
            case .cellular: .cellular
            case .other: .other
            }
    }
}
