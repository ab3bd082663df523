// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reachability reports whether the machine has a usable default route. It is a hint for user interfaces and for
// waiting; only a request proves that a server can be reached.

internal import CurlewEngine

extension PathMonitor {
    /// The network connection of the machine at one instant.
    public struct Path: Sendable, Hashable, CustomStringConvertible {
        /// The kind of an interface.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The loopback interface, which stays within the machine.
            case loopback
            /// A cable, or a virtual interface that looks like one, as in virtual machines and containers.
            case ethernet
            /// A wireless network.
            case wifi
            /// A mobile network.
            case cellular
            /// Another kind, such as a tunnel.
            case other
        }

        /// An interface of the machine.
        public struct Interface: Sendable, Hashable {
            /// The kernel's name, such as `eth0`.
            public let name: String
            /// The kind of the interface.
            public let kind: Kind
            /// Whether the interface is up and connected.
            public let isRunning: Bool
            /// Whether the interface has an IP address.
            public let hasAddress: Bool
        }

        /// All interfaces, sorted by name.
        public let interfaces: [Interface]
        /// The interface of a default route that is running and has an address; nil without such an interface.
        public let outward: Interface?

        /// Whether the machine has an outward interface.
        public var isSatisfied: Bool { outward != nil }

        /// The outward interface in words.
        public var description: String {
            outward.map { "connected by \($0.name) (\($0.kind.rawValue))" } ?? "not connected"
        }
    }
}

/// A sequence of the machine's network path: the current path at once, then the newest path after each change.
///
/// One thread of the process watches the kernel while iterators exist; without iterators, nothing is watched. No
/// privileges are needed.
///
/// ```swift
/// for await path in Session.shared.path where path.isSatisfied { break }
/// ```
public struct PathMonitor: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = PathMonitor.Path
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    init() {}

    /// Starts watching; the end of the iterator or the cancellation of its task stops it.
    public func makeAsyncIterator() -> AsyncStream<PathMonitor.Path>.Iterator {
        let (stream, continuation) = AsyncStream<PathMonitor.Path>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = LinkMonitor.shared.observe { continuation.yield(PathMonitor.Path($0)) }
        continuation.onTermination = { _ in LinkMonitor.shared.end(number) }
        return stream.makeAsyncIterator()
    }
}

extension PathMonitor.Path {
    init(_ state: LinkState) {
        interfaces = state.links.map { Interface($0) }
        outward = state.links.first { $0.name == state.defaultLink }.map { Interface($0) }
    }
}

extension PathMonitor.Path.Interface {
    fileprivate init(_ link: LinkState.Link) {
        name = link.name
        isRunning = link.isRunning
        hasAddress = link.hasAddress
        kind = PathMonitor.Path.Kind(sameAs: link.kind)
    }
}
