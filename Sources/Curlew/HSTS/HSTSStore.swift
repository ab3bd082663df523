// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// HTTP Strict Transport Security (RFC 6797): the hosts that require https, and the interceptor that applies them.

internal import CurlewEngine
internal import CurlewSupport
public import FoundationEssentials

/// The hosts that require https (HTTP Strict Transport Security, RFC 6797).
///
/// Every session has a store in memory, unless you pass another store or nil. The store remembers hosts
/// whose responses over https have the field `Strict-Transport-Security`; http requests to them are then sent as https
/// requests. Sessions with the same store share its hosts. Any thread may use a store.
///
/// ```swift
/// let hsts = try await HSTSStore(file: "hsts.txt")
/// try hsts.set(HSTSStore.Host("example.com", includesSubdomains: true, expires: .distantFuture))
/// let session = Session(hsts: hsts)
/// ```
///
/// A store keeps at most 10,000 hosts, and the policy of a response for at most a year after it. When it is full, it
/// removes the hosts that expire first. There is no preload list.
public final class HSTSStore: Sendable {
    /// A host that requires https.
    public struct Host: Sendable, Hashable {
        /// The name of the host, in lower case and as A-labels.
        public let name: String
        /// Whether all subdomains of the host require https, too.
        public let includesSubdomains: Bool
        /// The time at which the requirement ends, in whole seconds; `.distantFuture` for no end.
        public let expires: Date

        /// Creates a host.
        ///
        /// - Parameters:
        ///   - name: The name of the host; ``HSTSStore/set(_:)`` refuses an invalid name and an IP address.
        ///   - includesSubdomains: Whether all subdomains require https, too; false unless given.
        ///   - expires: The time at which the requirement ends; no end unless given.
        public init(_ name: String, includesSubdomains: Bool = false, expires: Date = .distantFuture) {
            self.name = HostName.key(name) ?? name
            self.includesSubdomains = includesSubdomains
            self.expires = expires.inWholeSeconds
        }
    }

    private struct State {
        var table = HSTSTable()
        /// The changes that are not in the file yet, nil for a removed host; empty for a store in memory.
        var pending: [String: Host?] = [:]
        var removesAll = false
        /// The number of the latest change; a save forgets the changes up to the number that it has seen.
        var lastNumber: UInt64 = 0
        /// The numbers of the changes in `pending`, and of the latest removal of all hosts.
        var numbers: [String: UInt64] = [:]
        var removalNumber: UInt64 = 0

        var hasChanges: Bool { !pending.isEmpty || removesAll }

        /// Whether the table has a policy already, except for a small difference: most responses of a host repeat it.
        func isCurrent(_ new: Host?, of name: String, at now: Date) -> Bool {
            guard let new, let known = table[name] else { return new == nil && table[name] == nil }
            let tolerance = min(HSTSStore.repeatInterval, new.expires.timeIntervalSince(now) / 10)
            return known.expires > now && known.includesSubdomains == new.includesSubdomains
                && abs(known.expires.timeIntervalSince(new.expires)) < tolerance
        }

        mutating func note(_ name: String, _ host: Host?) {
            lastNumber += 1
            pending[name] = .some(host)
            numbers[name] = lastNumber
            // While the file cannot be written, servers must not fill the memory with hosts that are evicted again.
            guard pending.count > HSTSTable.maximum else { return }
            for (name, host) in pending where host == nil || table[name] == nil { forget(name) }
        }

        mutating func forget(_ name: String) {
            pending[name] = nil
            numbers[name] = nil
        }
    }

    private let state = Lock(State())
    let revision = Revision()
    private let sharedFile: SharedFile?
    private let now: @Sendable () -> Date
    /// The time after which a repeated policy extends the stored one.
    private static let repeatInterval: TimeInterval = 60
    private let delayedSave = DelayedSave<HSTSStore>(
        hasChanges: { $0.state.withLock { $0.hasChanges } },
        save: { store in
            do throws(NetworkError) { try await store.save() } catch { return false }
            return true
        })

    /// Creates an empty store in memory.
    public convenience init() { self.init(nil) }

    init(_ file: SharedFile?, now: @escaping @Sendable () -> Date = { Date() }) {
        sharedFile = file
        self.now = now
    }

    /// The number of changes that are not in the file, for tests.
    var unsavedCount: Int { state.withLock { $0.pending.count } }

    // MARK: Reading

    /// The hosts that require https now, by name.
    public var hosts: [Host] { state.withLock { $0.table }.hosts(at: now()) }

    /// Returns whether requests to a host must use https: it has a policy, or a domain above it has one with
    /// `includesSubdomains`.
    public func isKnown(_ host: String) -> Bool {
        guard let key = HostName.key(host), !HostName.isAddress(key) else { return false }
        return state.withLock { $0.table.isKnown(key, at: now()) }
    }

    /// Returns the https URL for an http URL of a known host (RFC 6797 §8.3); nil for all other URLs.
    func upgraded(_ url: String) -> String? {
        // Most URLs are https, and most stores know no host.
        guard !revision.isEmpty, !url.utf8.starts(with: "https:".utf8), let target = try? RequestTarget(url),
            target.scheme == .http, isKnown(target.host)
        else { return nil }
        return Self.https(target, url)
    }

    /// Returns the https URL for an http URL with a target (RFC 6797 §8.3).
    static func https(_ target: RequestTarget, _ url: String) -> String {
        let host = target.isIPv6 ? "[\(target.host)]" : target.host
        let port = target.port == 80 ? "" : ":\(target.port)"
        let userInfo = target.userInfo.map { $0 + "@" } ?? ""
        let fragment = URLReference(url).fragment.map { "#" + String(decoding: $0, as: UTF8.self) } ?? ""
        return "https://\(userInfo)\(host)\(port)\(target.path)\(target.query.map { "?" + $0 } ?? "")\(fragment)"
    }

    // MARK: Changing

    /// Adds a host, also before its first response, or replaces its policy.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` in phase `preparing` for an invalid name and for an IP
    ///   address, which cannot have a policy (RFC 6797 §8.1.1).
    public func set(_ host: Host) throws(NetworkError) {
        guard HostName.key(host.name) == host.name, !HostName.isAddress(host.name) else {
            throw NetworkError(
                invalid: .host, "“\(host.name.escapingControls)” is not the name of a host.",
                hint: "HSTS needs a name such as example.com, without scheme, port and path, and no IP address.")
        }
        let now = now()
        change { state in
            state.table.set(host, at: now)
            state.note(host.name, host)
        }
    }

    /// Removes a host.
    ///
    /// - Returns: Whether the store had a policy of this host; policies of domains above it do not count.
    @discardableResult
    public func remove(_ host: String) -> Bool {
        let key = HostName.key(host) ?? host
        var hadHost = false
        change { state in
            hadHost = state.table.remove(key)
            state.note(key, nil)
        }
        return hadHost
    }

    /// Removes all hosts.
    public func removeAll() {
        change { state in
            state.table.removeAll()
            (state.pending, state.numbers, state.removesAll) = ([:], [:], true)
            state.lastNumber += 1
            state.removalNumber = state.lastNumber
        }
    }

    /// Stores the policy of a response (RFC 6797 §8.1).
    ///
    /// - Parameters:
    ///   - text: The value of the first `Strict-Transport-Security` field.
    ///   - url: The URL of the request; http URLs, IP addresses and the names of this machine are ignored: a policy of
    ///     localhost would affect the servers of all its ports.
    ///   - isAuthentic: Whether the server has proved to be a host; called only if the policy would change the store.
    func receive(_ text: String, from url: String, isAuthentic: (String) -> Bool = { _ in true }) {
        guard let target = try? RequestTarget(url), target.scheme == .https,
            let host = HostName.key(target.host), !HostName.isAddress(host), !RequestTarget.isLoopback(host),
            let policy = StrictTransportPolicy(text)
        else { return }
        let now = now()
        let new: Host?
        if policy.maxAge == 0 {
            new = nil
        } else {
            let expires = now.addingTimeInterval(Double(policy.maxAge))
            new = Host(host, includesSubdomains: policy.includesSubdomains, expires: expires)
        }
        guard !state.withLock({ $0.isCurrent(new, of: host, at: now) }), isAuthentic(host) else { return }
        change { state in
            if let new { state.table.set(new, at: now) } else { state.table.remove(host) }
            state.note(host, new)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let mustSave = state.withLock { state in
            body(&state)
            revision.advance(entries: state.table.count)
            if sharedFile == nil { (state.pending, state.numbers, state.removesAll) = ([:], [:], false) }
            return state.hasChanges
        }
        if mustSave { delayedSave.schedule(self) }
    }

    // MARK: The file

    /// Creates a store whose hosts are in a file in the format of `curl --hsts`; a missing file is created when
    /// there are hosts to save.
    ///
    /// The file is read now, on a disk thread. The store saves its changes after a second, in ``save()``, and when a
    /// session with this store shuts down. A failed automatic save is repeated a minute later. Several processes may
    /// use the file; for each host the later save counts. A save replaces the file atomically with mode 0600, and
    /// leaves out invalid lines.
    ///
    /// - Parameter path: The path of the file.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: the file cannot be read, has no
    ///   directory, is larger than 64 MiB, is a symbolic or hard link, belongs to another user or can be written by
    ///   one, or is not an HSTS file.
    public convenience init(file path: String) async throws(NetworkError) {
        self.init(SharedFile(DiskFile.absolute(path)))
        try await synchronise(writes: false)
    }

    /// The path of the store's file; nil for a store in memory.
    public var file: String? { sharedFile?.path }

    /// Writes the changes to the store's file, and reads those of other processes; a store in memory does nothing.
    ///
    /// Returns when the file is on the disk. Cancellation does not interrupt it.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`; the changes are kept for the next call.
    public func save() async throws(NetworkError) { try await synchronise(writes: true) }

    private func synchronise(writes: Bool) async throws(NetworkError) {
        guard let sharedFile else { return }
        let path = sharedFile.path
        let failure = await DiskThread.sharing.value(at: path) { () -> NetworkError? in
            do throws(DiskFailure) {
                if try self.synchroniseNow(sharedFile, writes: writes) { return nil }
            } catch {
                return NetworkError(unusable: "HSTS file", path, error)
            }
            return NetworkError(
                .destinationFailed, phase: .saving, "The file \(path) is not an HSTS file.",
                hint: "Check the path; Curlew does not overwrite other files.")
        }
        switch failure {
        case .some(nil): return
        case .some(let failure?): throw failure
        case nil: throw NetworkError(unusable: "HSTS file", path, .noThread)
        }
    }

    /// Reads the file and merges the changes, and writes the result if `writes` is true and there are changes; called
    /// on a disk thread.
    ///
    /// - Returns: False for a file with other contents, which stays unchanged.
    private func synchroniseNow(_ file: SharedFile, writes: Bool) throws(DiskFailure) -> Bool {
        let before = state.withLock(\.self)
        let now = now()
        var merged: HSTSTable?
        /// Returns the merged contents.
        func merge(_ bytes: [UInt8]) -> [UInt8]? {
            // A file that another program has emptied or removed is no reason to forget the hosts.
            guard let hosts = SharedFile.isBlank(bytes) ? before.table.hosts(at: now) : HSTSFile.hosts(bytes, now: now)
            else {
                return nil
            }
            var table = HSTSTable(before.removesAll ? [] : hosts)
            table.apply(before.pending, at: now)
            merged = table
            return HSTSFile.bytes(table.hosts(at: now))
        }
        let bytes = writes && before.hasChanges ? [] : try file.contents() ?? []
        if writes, before.hasChanges || SharedFile.isBlank(bytes) && before.table.count > 0 {
            try file.update(merge)
        } else {
            _ = merge(bytes)
        }
        guard var table = merged else { return false }
        state.withLock { state in
            if writes {
                for name in before.pending.keys where state.numbers[name] ?? 0 <= before.lastNumber {
                    state.forget(name)
                }
                if state.removalNumber <= before.lastNumber { state.removesAll = false }
            }
            // Changes that were made in the meantime stay.
            if state.removalNumber > before.lastNumber { table.removeAll() }
            table.apply(state.pending, at: now)
            state.table = table
            revision.advance(entries: state.table.count)
        }
        return true
    }
}

extension HSTSStore: CustomStringConvertible, CustomReflectable {
    /// The number of hosts.
    public var description: String { "HSTSStore(\(hosts.count) hosts)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
