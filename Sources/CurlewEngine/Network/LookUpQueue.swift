// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which host names are looked up now, and which wait for a thread.
///
/// The system's look-up cannot be interrupted: one whose name servers do not answer occupies its thread for up to 40
/// seconds. Such names must not delay those of other sessions, so each session has a share of the threads, look-ups that
/// take long make room for more threads, and some threads are kept for names that had addresses before.
package struct LookUpQueue {
    /// How many threads there are, and who may occupy them.
    package struct Limits: Sendable {
        /// Threads whose look-ups have not taken long.
        package var usual = 16
        /// Threads in all.
        package var most = 64
        /// Threads that only names with addresses found before may occupy; part of both numbers above.
        package var kept = 4
        /// Threads that one session occupies while its look-ups have not taken long.
        package var share = 8
        /// Threads that one session occupies in all; names found before are counted apart.
        package var mostPerSession = 24
        /// Nanoseconds after which a look-up has taken long.
        package var patience: UInt64 = 1_000_000_000

        package init() {}
    }

    /// What the queue wants done.
    enum Action: Hashable {
        /// Look a name up on a new thread.
        case start(String)
        /// Call `grow` now and then while `isWatched` holds.
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

    /// How many names are remembered as found, twice.
    private static let memory = 2048

    private let limits: Limits
    private var waiting: [String: Waiting] = [:]
    private var running: [String: Running] = [:]
    /// Names in the order they came; those that no longer wait for this session are skipped, and removed when they are
    /// many.
    private var lines: [Line: [String]] = [:]
    /// Names that had addresses: recently, and before that.
    private var found: (new: Set<String>, old: Set<String>) = ([], [])
    /// Whether somebody calls `grow` now and then.
    private(set) var isWatched = false

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// How many names wait or are being looked up.
    var count: Int { waiting.count + running.count }

    /// How many entries the lines have, for tests.
    var lengthOfLines: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Adds one who asks for a name.
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

    /// Removes one who asked; a name that no other asks for leaves the queue unless it is being looked up.
    mutating func withdraw(_ name: String, _ number: UInt64) {
        running[name]?.askers.removeAll { $0.number == number }
        guard var entry = waiting[name], let asker = entry.askers.first(where: { $0.number == number }) else { return }
        entry.askers.removeAll { $0.number == number }
        waiting[name] = entry.askers.isEmpty ? nil : entry
        if entry.askers.contains(where: { $0.session == asker.session }) { return }
        compact(Line(session: asker.session, isFamiliar: entry.isFamiliar))
    }

    /// Removes what no longer waits from a line that is mostly made of that, so that many names are withdrawn in linear
    /// time.
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

    /// Ends a look-up: gives the numbers of those who asked, and the name that its thread looks up next; nil ends it.
    mutating func finish(_ name: String, isFound: Bool, now: UInt64) -> (askers: [UInt64], next: String?) {
        if isFound { remember(name) }
        let askers = running.removeValue(forKey: name)?.askers.map(\.number) ?? []
        return (askers, startNext(now))
    }

    /// Takes back a look-up for which there is no thread.
    ///
    /// Its name waits for a thread that is there. Without any, the numbers of all who wait are given, and the queue is
    /// empty.
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

    /// Starts what may start by now.
    mutating func grow(_ now: UInt64) -> [Action] {
        var actions: [Action] = []
        while let name = startNext(now) { actions.append(.start(name)) }
        return actions + watchIfNeeded()
    }

    /// Has `grow` called now and then while names wait.
    mutating func watchIfNeeded() -> [Action] {
        if waiting.isEmpty || isWatched { return [] }
        isWatched = true
        return [.watch]
    }

    /// Ends the watch when nothing waits, or when there is no thread for it.
    mutating func endWatch(hasThread: Bool = true) { isWatched = hasThread && !waiting.isEmpty }

    // MARK: Rules

    private mutating func startNext(_ now: UInt64) -> String? {
        for isFamiliar in [true, false] {
            let ready = lines.keys.filter { $0.isFamiliar == isFamiliar && mayStart($0, now) }
            // The session that occupies the fewest comes first.
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

    /// The first name of a line that still waits there, which is being looked up from now on.
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
