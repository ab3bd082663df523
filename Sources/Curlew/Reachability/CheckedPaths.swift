// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// A check that completes the kernel's answer: the look-up of a name, or a probe.
protocol PathCheck: Sendable {
    /// The input of the check, such as the state of the interfaces.
    associatedtype Base: Sendable

    /// Returns the path that follows from the input and from the latest result of the check.
    func path(_ base: Base) -> PathMonitor.Path

    /// Whether the path depends on a check.
    func needsCheck(_ base: Base) -> Bool

    /// Whether a base differs from the last one in a way that makes another check necessary; remembers the base.
    func hasChanged(_ base: Base) -> Bool

    /// Runs the check and stores its result.
    ///
    /// - Returns: Whether the check succeeded.
    func run(_ base: Base) async -> Bool
}

/// Runs a check when ``CheckMachine`` requests it, and sends the path after each input and after each check.
actor CheckedPaths<Check: PathCheck> {
    private let check: Check
    private let newest: Newest<PathMonitor.Path>
    private let clock: any Clock<Duration>
    private var machine = CheckMachine()
    private var base: Check.Base?
    /// The task of the running check or wait.
    private var task: Task<Void, Never>?

    private init(_ check: Check, _ newest: Newest<PathMonitor.Path>, _ clock: any Clock<Duration>) {
        self.check = check
        self.newest = newest
        self.clock = clock
    }

    /// Returns the stream of paths for one reader.
    ///
    /// - Parameters:
    ///   - check: The check; each stream needs its own.
    ///   - clock: Measures the waits.
    ///   - bases: Returns the stream of inputs of the check.
    static func stream(
        _ check: Check, clock: any Clock<Duration> = ContinuousClock(),
        _ bases: @escaping @Sendable () -> AsyncStream<Check.Base>
    ) -> AsyncStream<PathMonitor.Path> {
        .newest { newest in
            let paths = CheckedPaths(check, newest, clock)
            let task = Task { await paths.follow(bases()) }
            return { task.cancel() }
        }
    }

    private func follow(_ bases: AsyncStream<Check.Base>) async {
        for await base in bases {
            self.base = base
            newest.send(check.path(base))
            if check.hasChanged(base) { perform(machine.changed(needsCheck: check.needsCheck(base))) }
        }
        task?.cancel()
        newest.finish()
    }

    private func perform(_ step: CheckMachine.Step?) {
        guard let step, let base else { return }
        task?.cancel()
        switch step {
        case .stopWaiting: task = nil
        case .check:
            task = Task {
                let isSuccess = await check.run(base)
                if !Task.isCancelled { end(isSuccess) }
            }
        case .wait(let time):
            task = Task {
                try? await clock.wait(for: time)
                if !Task.isCancelled { perform(machine.waitEnded()) }
            }
        }
    }

    private func end(_ isSuccess: Bool) {
        if let base { newest.send(check.path(base)) }
        perform(machine.checkEnded(isSuccess: isSuccess))
    }
}

/// The look-up of a host's name.
final class HostCheck: PathCheck {
    private enum Addresses: Sendable {
        case unknown
        /// The look-up failed; whether a name server could be asked at its start.
        case failed(isConnected: Bool)
        case found([PathTarget])
    }

    private let name: String
    private let resolver: EngineResolver
    private let source: PathSource
    private let addresses = Lock(Addresses.unknown)
    /// The network of the last look-up; nil before the first one.
    private let known = Lock<Network?>(nil)

    /// The facts on which the result of a look-up may depend.
    private struct Network: Sendable, Equatable {
        let links: [LinkState.Link]
        let nameServers: [String]
        let outside: PathMonitor.Path
        let host: PathMonitor.Path
    }

    init(_ name: String, _ resolver: EngineResolver, _ source: PathSource) {
        self.name = name
        self.resolver = resolver
        self.source = source
    }

    func path(_ state: LinkState) -> PathMonitor.Path {
        switch addresses.withLock({ $0 }) {
        case .found(let targets): return source.to(.addresses(targets)).path(state)
        case .unknown:
            return source.to(.addresses([])).path(state)
        case .failed(let isConnected):
            // Without a name server, the route to the Internet has the obstacle, and the name may exist.
            guard source.hasNameService(state) else { return source.to(.outside).path(state) }
            // A failure without a connection says nothing about the name; another look-up has begun.
            var failed = source.to(.addresses([])).path(state)
            if isConnected { (failed.status, failed.obstacle) = (.unsatisfied, .nameNotResolved) }
            return failed
        }
    }

    func needsCheck(_ state: LinkState) -> Bool { true }

    /// Reports about other routes, which a busy machine changes all the time, lead to no look-up.
    func hasChanged(_ state: LinkState) -> Bool {
        let now = Network(
            links: state.links, nameServers: state.nameServers, outside: source.to(.outside).path(state),
            host: path(state))
        return known.withLock { known in
            defer { known = now }
            return known != now
        }
    }

    func run(_ state: LinkState) async -> Bool {
        let isConnected = source.hasNameService(state)
        guard let outcome = await resolver.addressesUnlessCancelled(of: name) else { return false }
        var targets: [PathTarget] = []
        if case .success(let found) = outcome { targets = found.endpoints.compactMap { PathTarget(address: $0.ip) } }
        addresses.withLock { $0 = targets.isEmpty ? .failed(isConnected: isConnected) : .found(targets) }
        return !targets.isEmpty
    }
}

/// The probe of a path.
final class ProbeCheck: PathCheck {
    private struct Result {
        var isSuccess: Bool
        var link: String?
    }

    private struct State {
        /// The result of the last probe; nil before the first one, and after the path was unsatisfied.
        var result: Result?
        /// How often the path was unsatisfied: a probe that began before is not a probe of the present network.
        var interruptions = 0
    }

    private let probe: PathMonitor.Probe
    private let state = Lock(State())

    init(_ probe: PathMonitor.Probe) { self.probe = probe }

    func path(_ path: PathMonitor.Path) -> PathMonitor.Path {
        guard path.isSatisfied else {
            // The next network may be another one, such as one with a portal.
            state.withLock { $0 = State(result: nil, interruptions: $0.interruptions + 1) }
            return path
        }
        var path = path
        switch state.withLock({ $0.result }) {
        case let result? where result.link == path.outward?.name:
            if !result.isSuccess { (path.status, path.obstacle) = (.unsatisfied, .probeFailed) }
        default: path.status = .unknown
        }
        return path
    }

    func needsCheck(_ path: PathMonitor.Path) -> Bool { path.isSatisfied }

    /// True: a monitor gives no path twice in a row.
    func hasChanged(_ path: PathMonitor.Path) -> Bool { true }

    func run(_ path: PathMonitor.Path) async -> Bool {
        let interruptions = state.withLock { $0.interruptions }
        let isSuccess = await probe.check(path)
        // The result of a cancelled probe says nothing.
        if !Task.isCancelled {
            state.withLock { state in
                guard state.interruptions == interruptions else { return }
                state.result = Result(isSuccess: isSuccess, link: path.outward?.name)
            }
        }
        return isSuccess
    }
}
