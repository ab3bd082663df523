// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which host names are looked up now and which wait for a thread.
///
/// The system's look-up cannot be interrupted: it occupies its thread for up to 40 seconds if the DNS servers do not
/// respond. Such names must not delay the names of other sessions. Therefore each session has a limited share of the
/// threads, slow look-ups allow additional threads, and some threads are reserved for names that had addresses before.
package struct LookUpQueue {
    /// The limits of threads, in total and for each session.
    package struct Limits: Sendable {
        /// The maximum number of threads with look-ups that are not slow.
        package var usual = 16
        /// The maximum number of threads.
        package var most = 64
        /// The threads reserved for names that had addresses before; included in both numbers above.
        package var kept = 4
        /// The maximum number of threads of one session with look-ups that are not slow.
        package var share = 8
        /// The maximum number of threads of one session; look-ups of names found before are counted separately.
        package var mostPerSession = 24
        /// The time in nanoseconds after which a look-up is slow.
        package var patience: UInt64 = 1_000_000_000

        package init() {}
    }

    /// An action that the queue requests from its owner.
    enum Action: Hashable {
        /// Look up a name on a new thread.
        case start(String)
        /// Call `grow` periodically while `isWatched` is true.
        case watch
    }

    private struct Asker {
        let number: UInt64
        let session: UInt64
    }

    private struct Waiting {
        var askers: [Asker] = []
        /// Whether the name had addresses before.
        let isFamiliar: Bool
    }

    private struct Running {
        var askers: [Asker]
        let session: UInt64
        let isFamiliar: Bool
        let startedAt: UInt64
    }

    private struct Line: Hashable {
        let session: UInt64
        let isFamiliar: Bool
    }

    /// The size of each of the two sets in `found`.
    private static let memory = 2048

    private let limits: Limits
    private var waiting: [String: Waiting] = [:]
    private var running: [String: Running] = [:]
    /// The waiting names of each session in order of arrival; names that no longer wait are skipped, and removed when
    /// there are many.
    private var lines: [Line: [String]] = [:]
    /// The names that had addresses, in a recent set and an older one.
    private var found: (new: Set<String>, old: Set<String>) = ([], [])
    /// Whether the owner calls `grow` periodically.
    private(set) var isWatched = false

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// The number of names that wait or are being looked up.
    var count: Int { waiting.count + running.count }

    /// The number of entries in all waiting lists, for tests.
    var lengthOfLines: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Adds a request for a name.
    mutating func ask(_ name: String, _ number: UInt64, for session: UInt64, now: UInt64) -> [Action] {
        let asker = Asker(number: number, session: session)
        if running[name] != nil {
            running[name]?.askers.append(asker)
            return []
        }
        var entry = waiting[name] ?? Waiting(isFamiliar: found.new.contains(name) || found.old.contains(name))
        let isFirst = !entry.askers.contains { $0.session == session }
        entry.askers.append(asker)
        waiting[name] = entry
        if isFirst { lines[Line(session: session, isFamiliar: entry.isFamiliar), default: []].append(name) }
        return grow(now)
    }

    /// Removes a request; a name without further requests leaves the queue unless it is being looked up.
    mutating func withdraw(_ name: String, _ number: UInt64) {
        running[name]?.askers.removeAll { $0.number == number }
        guard var entry = waiting[name], let asker = entry.askers.first(where: { $0.number == number }) else { return }
        entry.askers.removeAll { $0.number == number }
        waiting[name] = entry.askers.isEmpty ? nil : entry
        if entry.askers.contains(where: { $0.session == asker.session }) { return }
        compact(Line(session: asker.session, isFamiliar: entry.isFamiliar))
    }

    /// Removes stale names from a waiting list if most of its names are stale, so that withdrawing many names takes
    /// linear time.
    private mutating func compact(_ line: Line) {
        guard let names = lines[line], names.count > 2 * waiting.count + 64 else { return }
        var seen: Set<String> = []
        let left = names.filter { isWaiting($0, in: line) && seen.insert($0).inserted }
        lines[line] = left.isEmpty ? nil : left
    }

    private func isWaiting(_ name: String, in line: Line) -> Bool {
        guard let entry = waiting[name], entry.isFamiliar == line.isFamiliar else { return false }
        return entry.askers.contains { $0.session == line.session }
    }

    /// Ends a look-up.
    ///
    /// - Returns: The numbers of the requests for the name, and the next name for the same thread; nil ends the thread.
    mutating func finish(_ name: String, isFound: Bool, now: UInt64) -> (askers: [UInt64], next: String?) {
        if isFound { remember(name) }
        let askers = running.removeValue(forKey: name)?.askers.map(\.number) ?? []
        return (askers, startNext(now))
    }

    /// Takes back a look-up whose thread could not be started.
    ///
    /// The name waits for another running thread. If no thread runs, the queue becomes empty.
    /// - Returns: The numbers of all waiting requests if no thread runs; otherwise an empty array.
    mutating func threadFailed(for name: String) -> [UInt64] {
        guard let run = running.removeValue(forKey: name) else { return [] }
        if running.isEmpty {
            let askers = run.askers + waiting.values.flatMap(\.askers)
            (waiting, lines) = ([:], [:])
            return askers.map(\.number).sorted()
        }
        guard !run.askers.isEmpty else { return [] }
        waiting[name] = Waiting(askers: run.askers, isFamiliar: run.isFamiliar)
        for session in Set(run.askers.map(\.session)) {
            lines[Line(session: session, isFamiliar: run.isFamiliar), default: []].insert(name, at: 0)
        }
        return []
    }

    /// Starts all look-ups that may start at the time `now`.
    mutating func grow(_ now: UInt64) -> [Action] {
        var actions: [Action] = []
        while let name = startNext(now) { actions.append(.start(name)) }
        return actions + watchIfNeeded()
    }

    /// Requests periodic calls of `grow` if names wait.
    mutating func watchIfNeeded() -> [Action] {
        if waiting.isEmpty || isWatched { return [] }
        isWatched = true
        return [.watch]
    }

    /// Ends the periodic calls if no name waits, or if their thread could not be started.
    mutating func endWatch(hasThread: Bool = true) { isWatched = hasThread && !waiting.isEmpty }

    // MARK: Rules

    private mutating func startNext(_ now: UInt64) -> String? {
        for isFamiliar in [true, false] {
            let ready = lines.keys.filter { $0.isFamiliar == isFamiliar && mayStart($0, now) }
            // The session with the fewest running look-ups comes first.
            guard let line = ready.min(by: { (load($0), $0.session) < (load($1), $1.session) }) else { continue }
            return takeFirst(of: line, now) ?? startNext(now)
        }
        return nil
    }

    private func load(_ line: Line) -> Int { running.values.count { $0.session == line.session } }

    private func mayStart(_ line: Line, _ now: UInt64) -> Bool {
        let kept = line.isFamiliar ? 0 : limits.kept
        guard running.count < limits.most - kept else { return false }
        let own = running.values.filter { $0.session == line.session && $0.isFamiliar == line.isFamiliar }
        if own.isEmpty { return true }
        guard own.count < limits.mostPerSession, own.count(where: { !isLong($0, now) }) < limits.share else {
            return false
        }
        return running.values.count { !isLong($0, now) } < limits.usual - kept
    }

    private func isLong(_ run: Running, _ now: UInt64) -> Bool { now >= run.startedAt &+ limits.patience }

    /// Moves the first name of a waiting list that still waits to the running look-ups, and returns it.
    private mutating func takeFirst(of line: Line, _ now: UInt64) -> String? {
        var names = lines.removeValue(forKey: line) ?? []
        defer { if !names.isEmpty { lines[line] = names } }
        while !names.isEmpty {
            let name = names.removeFirst()
            guard isWaiting(name, in: line), let entry = waiting.removeValue(forKey: name) else { continue }
            running[name] = Running(
                askers: entry.askers, session: line.session, isFamiliar: line.isFamiliar, startedAt: now)
            return name
        }
        return nil
    }

    private mutating func remember(_ name: String) {
        found.new.insert(name)
        if found.new.count > Self.memory { found = ([], found.new) }
    }
}
