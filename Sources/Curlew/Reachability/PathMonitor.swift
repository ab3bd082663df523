// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reachability reports whether the kernel has a route to the Internet, to an address or to a host. A route is a hint
// for user interfaces and for waits; only a request, or a probe that sends one, proves that a server responds.

internal import CurlewEngine
internal import CurlewSupport

/// A sequence of network paths: the present path first, then the newest path after each change.
///
/// A monitor observes the kernel's routes to the Internet, to an address, or to a host. It needs no start and no
/// privileges, and does not poll: while iterators exist, one thread of the process waits for reports of the kernel for
/// all monitors. A slow reader receives only the newest path, and never the same path twice in a row.
///
/// The sequence does not end by itself. An observation begins with `makeAsyncIterator()`, and ends when the iterator is
/// released or its task is cancelled. Any number of tasks may iterate over one monitor.
///
/// ```swift
/// for await path in PathMonitor.shared where path.isSatisfied { break }
///
/// for await path in PathMonitor(host: "api.example.com") {
///     print(path.reachability, path.outward?.name ?? "", path.isMetered ?? false)
/// }
/// ```
public struct PathMonitor: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = PathMonitor.Path
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    private let paths: @Sendable () -> AsyncStream<Path>
    /// Returns the present path after the first look-up or probe.
    private let present: @Sendable () async -> Path

    /// The monitor of the routes to the public Internet, by IPv4 or IPv6.
    ///
    /// The path is satisfied if the kernel has such a route over a running interface other than the loopback interface,
    /// and a suitable source address.
    public static let shared = PathMonitor(PathSource(.outside))

    /// Creates a monitor of the routes to the public Internet, like ``shared``.
    public init() { self = .shared }

    /// Creates a monitor of the route to an IP address.
    ///
    /// The kernel answers with its routing rules and tables, so the address may belong to a private network, to a VPN
    /// or to this machine. No packet is sent.
    ///
    /// - Parameter address: An IPv4 or IPv6 address. A link-local IPv6 address is followed by "%" and the name of its
    ///   interface, as in "fe80::1%eth0".
    /// - Throws: `NetworkError` of kind `.invalidRequest` if the text is not an IP address.
    public init(address: String) throws(NetworkError) {
        guard let target = PathTarget(address: address) else {
            throw NetworkError(
                invalid: .usage, "“\(address.escapingControls)” is not an IP address.",
                hint: "Use PathMonitor(host:) for a name.")
        }
        self.init(PathSource(.addresses([target])))
    }

    /// Creates a monitor of the routes to a host.
    ///
    /// For each iterator, the monitor looks up the name and asks the kernel for the routes to its addresses. It looks
    /// up the name again after each change of interfaces, of name servers, of these routes, or of the route to the
    /// Internet. The path is satisfied if the kernel has a usable route to one of the addresses. The status is
    /// ``Path/Status/unknown`` until the first look-up has ended; later look-ups keep the last result until they end.
    /// The monitor repeats a failed look-up after 1 s, 2 s, 4 s and so on up to 60 s, until it succeeds. A change of
    /// the name's records in the DNS alone leads to no look-up. The names `localhost` and `*.localhost` are not looked
    /// up: they mean this machine (RFC 6761 §6.3).
    ///
    /// - Parameters:
    ///   - host: A name, or an IP address.
    ///   - resolver: Looks up the name; the system's name service by default.
    public init(host: String, resolver: Session.Resolver = .system) {
        self.init(host: host, resolver: resolver.engine)
    }

    /// Creates a monitor that reports the paths of another source, such as a test.
    ///
    /// - Parameter paths: Returns the stream of one iterator, which begins with the present path. Called for each
    ///   iterator, on any thread. The monitor passes the stream on unchanged, so the stream determines its buffer, and
    ///   whether it ends or repeats a path.
    public init(_ paths: @escaping @Sendable () -> AsyncStream<Path>) {
        self.paths = paths
        present = {
            var iterator = paths().makeAsyncIterator()
            return await iterator.next() ?? .unknown
        }
    }

    init(_ source: PathSource) { self.init { source.paths() } }

    /// Creates a monitor whose paths depend on a check.
    ///
    /// - Parameters:
    ///   - makeCheck: Makes the check of each iterator.
    ///   - bases: Returns a stream of what the check depends on.
    ///   - base: Returns the present value of that.
    private init<Check: PathCheck>(
        _ makeCheck: @escaping @Sendable () -> Check, _ bases: @escaping @Sendable () -> AsyncStream<Check.Base>,
        _ base: @escaping @Sendable () async -> Check.Base?
    ) {
        paths = { CheckedPaths.stream(makeCheck(), bases) }
        present = {
            guard let base = await base() else { return .unknown }
            let check = makeCheck()
            if check.needsCheck(base) { _ = await check.run(base) }
            return Task.isCancelled ? .unknown : check.path(base)
        }
    }

    init(host: String, resolver: EngineResolver, _ source: PathSource = PathSource(.outside)) {
        let name = HostName.key(host.trimmingBrackets) ?? host
        if let target = PathTarget(address: name) {
            self.init(source.to(.addresses([target])))
        } else if RequestTarget.isLoopback(name) {
            // Connections do not look up these names.
            self.init(source.to(.addresses(["127.0.0.1", "::1"].compactMap { PathTarget(address: $0) })))
        } else {
            self.init({ HostCheck(name, resolver, source) }, { source.states() }) {
                var states = source.states().makeAsyncIterator()
                return await states.next()
            }
        }
    }

    /// Starts to observe; the end of the iterator or the cancellation of its task ends the observation.
    public func makeAsyncIterator() -> AsyncStream<PathMonitor.Path>.Iterator { paths().makeAsyncIterator() }

    /// The present path.
    ///
    /// The monitor of a host looks up the name first, and a probing monitor first probes a satisfied path, once. The
    /// path is ``Path/unknown`` if the task is cancelled.
    public var current: Path {
        get async { await present() }
    }

    /// Returns a monitor that also probes each satisfied path of this monitor, since a route does not prove a
    /// connection.
    ///
    /// The probe runs separately for each iterator: when this monitor reports a satisfied path, and again after each
    /// change to another satisfied path. A failed probe is repeated after 1 s, 2 s, 4 s and so on up to 60 s, until it
    /// succeeds; after a success, the probe runs again only after a change. The status of the path is unknown before
    /// the end of the first probe, and the path is unsatisfied with ``Path/Obstacle/probeFailed`` after a failed probe.
    /// Later probes keep the last result until they end, unless the path was unsatisfied meanwhile or uses another
    /// interface: then the status is unknown again.
    ///
    /// - Parameter probe: The probe.
    /// - Returns: The monitor.
    public func probing(_ probe: Probe) -> PathMonitor {
        PathMonitor({ ProbeCheck(probe) }, paths, present)
    }
}

extension String {
    /// This text without the brackets around an IPv6 address.
    fileprivate var trimmingBrackets: String {
        hasPrefix("[") && hasSuffix("]") ? String(dropFirst().dropLast()) : self
    }
}
