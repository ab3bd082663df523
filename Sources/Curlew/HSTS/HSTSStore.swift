// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// HTTP Strict Transport Security (RFC 6797): the hosts that require https, and the interceptor that applies them.

internal import CurlewEngine
internal import CurlewSupport
public import FoundationEssentials

/// The hosts that require https (HTTP Strict Transport Security, RFC 6797).
///
/// Every session has a store in memory unless it is created with another one, or with none. The store remembers hosts
/// whose responses over https have the field `Strict-Transport-Security`; http requests to them are then sent as https
/// requests. Sessions with the same store share its hosts. Any thread may use a store.
///
/// ```swift
/// let hsts = try await HSTSStore(file: "hsts.txt")
/// try hsts.set(HSTSStore.Host("example.com", includesSubdomains: true, expires: .distantFuture))
/// let session = Session(hsts: hsts)
/// ```
///
/// A store keeps at most 10,000 hosts; beyond that it removes the hosts that expire first.
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
        var isSaveScheduled = false

        /// Whether the table has a policy already, except for a difference of less than a minute: most responses of a
        /// host repeat it.
        func isCurrent(_ new: Host?, of name: String) -> Bool {
            guard let new, let known = table[name] else { return new == nil && table[name] == nil }
            return known.includesSubdomains == new.includesSubdomains
                && abs(known.expires.timeIntervalSince(new.expires)) < HSTSStore.repeatInterval
        }

        mutating func note(_ name: String, _ host: Host?) {
            lastNumber += 1
            pending[name] = .some(host)
            numbers[name] = lastNumber
        }

        mutating func forget(_ name: String) {
            pending[name] = nil
            numbers[name] = nil
        }
    }

    private let state = Lock(State())
    let count = ChangeCount()
    private let sharedFile: SharedFile?
    private let now: @Sendable () -> Date
    /// The time after which a repeated policy extends the stored one.
    private static let repeatInterval: TimeInterval = 60
    private static let saveDelay = Duration.seconds(1)

    /// Creates an empty store in memory.
    public convenience init() { self.init(nil) }

    init(_ file: SharedFile?, now: @escaping @Sendable () -> Date = { Date() }) {
        sharedFile = file
        self.now = now
    }

    // MARK: Reading

    /// The hosts that require https now, by name.
    public var hosts: [Host] { state.withLock { $0.table }.hosts(at: now()) }

    /// Returns whether requests to a host must use https, by its own policy or that of a domain above it.
    public func isKnown(_ host: String) -> Bool {
        guard let key = HostName.key(host), !HostName.isAddress(key) else { return false }
        return state.withLock { $0.table.isKnown(key, at: now()) }
    }

    /// Returns the https URL for an http URL of a known host (RFC 6797 §8.3); nil for all other URLs.
    func upgraded(_ url: String) -> String? {
        // Most URLs are https, and most stores know no host.
        guard !count.isEmpty, !url.utf8.starts(with: "https:".utf8), let target = try? RequestTarget(url),
            target.scheme == .http, isKnown(target.host)
        else { return nil }
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
                .invalidRequest, phase: .preparing, "“\(host.name.escapingControls)” is not the name of a host.",
                hint: "HSTS needs a name such as example.com, without scheme, port and path, and no IP address.",
                requestFlaw: .host)
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
    ///   - url: The URL of the request; http URLs and IP addresses are ignored.
    ///   - isAuthentic: Whether the server has proved to be a host; called only if the policy would change the store.
    func receive(_ text: String, from url: String, isAuthentic: (String) -> Bool = { _ in true }) {
        guard let target = try? RequestTarget(url), target.scheme == .https,
            let host = HostName.key(target.host), !HostName.isAddress(host), let policy = StrictTransportPolicy(text)
        else { return }
        let now = now()
        let new: Host?
        if policy.maxAge == 0 {
            new = nil
        } else {
            let expires = now.addingTimeInterval(Double(policy.maxAge))
            new = Host(host, includesSubdomains: policy.includesSubdomains, expires: expires)
        }
        guard !state.withLock({ $0.isCurrent(new, of: host) }), isAuthentic(host) else { return }
        change { state in
            if let new { state.table.set(new, at: now) } else { state.table.remove(host) }
            state.note(host, new)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let mustSave = state.withLock { state in
            body(&state)
            count.change(to: state.table.count)
            guard sharedFile != nil else {
                (state.pending, state.numbers, state.removesAll) = ([:], [:], false)
                return false
            }
            defer { state.isSaveScheduled = true }
            return !state.isSaveScheduled
        }
        if mustSave { saveLater() }
    }

    // MARK: The file

    /// Creates a store whose hosts are in a file of libcurl's format (`curl --hsts`), which is read now and created
    /// when there are hosts to save.
    ///
    /// The file is read and written on a disk thread. Changes are written a second later, by ``save()``, and by the
    /// shutdown of a session with this store. Several processes may use the same file. It is replaced atomically, with
    /// permissions for this user only. Invalid lines are ignored.
    ///
    /// - Parameter path: The path of the file.
    /// - Throws: `NetworkError` of kind `.destinationFailed` in phase `saving`: the file cannot be read, is a link,
    ///   belongs to another user or can be written by one, or has other contents.
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

    private func saveLater() {
        Task(priority: .utility) {
            try? await ContinuousClock().wait(for: Self.saveDelay)
            state.withLock { $0.isSaveScheduled = false }
            try? await save()
        }
    }

    private func synchronise(writes: Bool) async throws(NetworkError) {
        guard let sharedFile else { return }
        let path = sharedFile.path
        let failure = await DiskThread.sharing.value(at: path) { () -> NetworkError? in
            do throws(DiskFailure) {
                if try self.synchroniseNow(sharedFile, writes: writes) { return nil }
            } catch {
                return Self.unusable(path, "\(error)", DownloadDestination.Failure(error))
            }
            return Self.unusable(path, "it is not an HSTS file", nil)
        }
        switch failure {
        case .some(nil): return
        case .some(let failure?): throw failure
        case nil: throw Self.unusable(path, "there is no thread for it", nil)
        }
    }

    private static func unusable(_ path: String, _ reason: String, _ cause: (any Error)?) -> NetworkError {
        NetworkError(
            .destinationFailed, phase: .saving, "The HSTS file \(path) cannot be used: \(reason).",
            hint: "Check the path, the owner and the permissions of the file.", cause: cause)
    }

    /// Reads the file and merges the changes, and writes the result if `writes` is true and there are changes; called
    /// on a disk thread.
    ///
    /// - Returns: False for a file with other contents, which stays unchanged.
    private func synchroniseNow(_ file: SharedFile, writes: Bool) throws(DiskFailure) -> Bool {
        let (changes, removesAll, number) = state.withLock { ($0.pending, $0.removesAll, $0.lastNumber) }
        let now = now()
        var found: [Host]?
        if writes, !changes.isEmpty || removesAll {
            try file.update { bytes in
                guard let hosts = HSTSFile.hosts(bytes, now: now) else { return nil }
                var table = HSTSTable(removesAll ? [] : hosts)
                table.apply(changes, at: now)
                found = table.hosts(at: now)
                return HSTSFile.bytes(table.hosts(at: now))
            }
        } else {
            found = HSTSFile.hosts(try file.contents() ?? [], now: now)
        }
        guard let found else { return false }
        state.withLock { state in
            // Changes that were made in the meantime stay.
            if writes {
                for name in changes.keys where state.numbers[name] ?? 0 <= number { state.forget(name) }
                if state.removalNumber <= number { state.removesAll = false }
            }
            var table = HSTSTable(state.removesAll ? [] : found)
            table.apply(state.pending, at: now)
            state.table = table
            count.change(to: state.table.count)
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
