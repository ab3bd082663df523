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
        package var fast = 16
        /// The maximum number of threads.
        package var maximum = 64
        /// The threads reserved for names that had addresses before; included in both numbers above.
        package var reserved = 4
        /// The maximum number of threads of one session with look-ups that are not slow.
        package var fastPerSession = 8
        /// The maximum number of threads of one session; look-ups of names found before are counted separately.
        package var maximumPerSession = 24
        /// The time in nanoseconds after which a look-up is slow.
        package var patience: UInt64 = 1_000_000_000

        package init() {}
    }

    /// An action that the queue requests from its owner.
    enum Action: Hashable {
        /// Look up a name on a new thread.
        case start(String)
        /// Call `startPending` periodically while `isWatched` is true.
        case watch
    }

    private struct Waiter {
        let number: UInt64
        let session: UInt64
    }

    private struct Waiting {
        var waiters: [Waiter] = []
        /// Whether the name had addresses before.
        let hadAddresses: Bool
    }

    private struct Running {
        var waiters: [Waiter]
        let session: UInt64
        let hadAddresses: Bool
        let startedAt: UInt64
    }

    private struct ListKey: Hashable {
        let session: UInt64
        let hadAddresses: Bool
    }

    /// The size of each of the two sets in `found`.
    private static let rememberedNames = 2048

    private let limits: Limits
    private var waiting: [String: Waiting] = [:]
    private var running: [String: Running] = [:]
    /// The waiting names of each session in order of arrival; names that no longer wait are skipped, and removed when
    /// there are many.
    private var waitingLists: [ListKey: [String]] = [:]
    /// The names that had addresses, in a recent set and an older one.
    private var found: (new: Set<String>, old: Set<String>) = ([], [])
    /// Whether the owner calls `startPending` periodically.
    private(set) var isWatched = false

    init(_ limits: Limits = Limits()) { self.limits = limits }

    /// The number of names that wait or are being looked up.
    var count: Int { waiting.count + running.count }

    /// The number of entries in all waiting lists, for tests.
    var waitingEntryCount: Int { waitingLists.values.reduce(0) { $0 + $1.count } }

    /// Adds a request for a name.
    mutating func add(_ name: String, _ number: UInt64, for session: UInt64, now: UInt64) -> [Action] {
        let waiter = Waiter(number: number, session: session)
        if running[name] != nil {
            running[name]?.waiters.append(waiter)
            return []
        }
        var entry = waiting[name] ?? Waiting(hadAddresses: found.new.contains(name) || found.old.contains(name))
        let isFirst = !entry.waiters.contains { $0.session == session }
        entry.waiters.append(waiter)
        waiting[name] = entry
        if isFirst {
            waitingLists[ListKey(session: session, hadAddresses: entry.hadAddresses), default: []].append(name)
        }
        return startPending(now)
    }

    /// Removes a request; a name without further requests leaves the queue unless it is being looked up.
    mutating func withdraw(_ name: String, _ number: UInt64) {
        running[name]?.waiters.removeAll { $0.number == number }
        guard var entry = waiting[name], let waiter = entry.waiters.first(where: { $0.number == number }) else {
            return
        }
        entry.waiters.removeAll { $0.number == number }
        waiting[name] = entry.waiters.isEmpty ? nil : entry
        if entry.waiters.contains(where: { $0.session == waiter.session }) { return }
        compact(ListKey(session: waiter.session, hadAddresses: entry.hadAddresses))
    }

    /// Removes stale names from a waiting list if most of its names are stale, so that withdrawing many names takes
    /// linear time.
    private mutating func compact(_ key: ListKey) {
        guard let names = waitingLists[key], names.count > 2 * waiting.count + 64 else { return }
        var seen: Set<String> = []
        let left = names.filter { isWaiting($0, in: key) && seen.insert($0).inserted }
        waitingLists[key] = left.isEmpty ? nil : left
    }

    private func isWaiting(_ name: String, in key: ListKey) -> Bool {
        guard let entry = waiting[name], entry.hadAddresses == key.hadAddresses else { return false }
        return entry.waiters.contains { $0.session == key.session }
    }

    /// Ends a look-up.
    ///
    /// - Returns: The numbers of the requests for the name, and the next name for the same thread; nil ends the thread.
    mutating func finish(_ name: String, isFound: Bool, now: UInt64) -> (waiters: [UInt64], next: String?) {
        if isFound { remember(name) }
        let waiters = running.removeValue(forKey: name)?.waiters.map(\.number) ?? []
        return (waiters, startNext(now))
    }

    /// Takes back a look-up whose thread could not be started.
    ///
    /// The name waits for another running thread. If no thread runs, the queue becomes empty.
    /// - Returns: The numbers of all waiting requests if no thread runs; otherwise an empty array.
    mutating func threadFailed(for name: String) -> [UInt64] {
        guard let run = running.removeValue(forKey: name) else { return [] }
        if running.isEmpty {
            let waiters = run.waiters + waiting.values.flatMap(\.waiters)
            (waiting, waitingLists) = ([:], [:])
            return waiters.map(\.number).sorted()
        }
        guard !run.waiters.isEmpty else { return [] }
        waiting[name] = Waiting(waiters: run.waiters, hadAddresses: run.hadAddresses)
        for session in Set(run.waiters.map(\.session)) {
            waitingLists[ListKey(session: session, hadAddresses: run.hadAddresses), default: []].insert(name, at: 0)
        }
        return []
    }

    /// Starts all look-ups that may start at the time `now`.
    mutating func startPending(_ now: UInt64) -> [Action] {
        var actions: [Action] = []
        while let name = startNext(now) { actions.append(.start(name)) }
        return actions + watchIfNeeded()
    }

    /// Requests periodic calls of `startPending` if names wait.
    mutating func watchIfNeeded() -> [Action] {
        if waiting.isEmpty || isWatched { return [] }
        isWatched = true
        return [.watch]
    }

    /// Ends the periodic calls if no name waits, or if their thread could not be started.
    mutating func endWatch(hasThread: Bool = true) { isWatched = hasThread && !waiting.isEmpty }

    // MARK: Rules

    private mutating func startNext(_ now: UInt64) -> String? {
        for hadAddresses in [true, false] {
            let ready = waitingLists.keys.filter { $0.hadAddresses == hadAddresses && mayStart($0, now) }
            // The session with the fewest running look-ups comes first.
            guard let key = ready.min(by: { (load($0), $0.session) < (load($1), $1.session) }) else { continue }
            return takeFirst(of: key, now) ?? startNext(now)
        }
        return nil
    }

    private func load(_ key: ListKey) -> Int { running.values.count { $0.session == key.session } }

    private func mayStart(_ key: ListKey, _ now: UInt64) -> Bool {
        let reserved = key.hadAddresses ? 0 : limits.reserved
        guard running.count < limits.maximum - reserved else { return false }
        let own = running.values.filter { $0.session == key.session && $0.hadAddresses == key.hadAddresses }
        if own.isEmpty { return true }
        guard own.count < limits.maximumPerSession, own.count(where: { !isLong($0, now) }) < limits.fastPerSession
        else {
            return false
        }
        return running.values.count { !isLong($0, now) } < limits.fast - reserved
    }

    private func isLong(_ run: Running, _ now: UInt64) -> Bool { now >= run.startedAt &+ limits.patience }

    /// Moves the first name of a waiting list that still waits to the running look-ups, and returns it.
    private mutating func takeFirst(of key: ListKey, _ now: UInt64) -> String? {
        var names = waitingLists.removeValue(forKey: key) ?? []
        defer { if !names.isEmpty { waitingLists[key] = names } }
        while !names.isEmpty {
            let name = names.removeFirst()
            guard isWaiting(name, in: key), let entry = waiting.removeValue(forKey: name) else { continue }
            running[name] = Running(
                waiters: entry.waiters, session: key.session, hadAddresses: key.hadAddresses, startedAt: now)
            return name
        }
        return nil
    }

    private mutating func remember(_ name: String) {
        found.new.insert(name)
        if found.new.count > Self.rememberedNames { found = ([], found.new) }
    }
}
