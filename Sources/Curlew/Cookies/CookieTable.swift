// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The cookies of a jar, as a pure value: storing, retrieving and removing (RFC 6265bis §5.7 and §5.8).
struct CookieTable: Sendable {
    /// A stored cookie.
    struct Entry: Sendable {
        var cookie: Cookie
        /// The number of the step that created the cookie; it orders cookies with equal creation times.
        var order: UInt64
        /// The number of the step that last sent or set the cookie.
        var used: UInt64
        /// The time of the last change, for merging with a file.
        var changed: Date
    }

    /// An effect of a step on the stored cookies.
    enum Effect: Sendable, Equatable {
        case stored(Cookie, replaced: Cookie?)
        case removed(Cookie, CookieJar.Removal)
    }

    /// The maximum numbers of cookies.
    struct Limits: Sendable {
        /// For one domain; RFC 6265bis §6.1 requires at least 50, and common browsers keep 180.
        var perDomain = 180
        /// For all domains together (RFC 6265bis §6.1).
        var total = 3000
    }

    private let limits: Limits
    /// The entries of each domain, in the order of their storage.
    private var entries: [String: [Entry]] = [:]
    private(set) var count = 0
    private var lastStep: UInt64 = 0

    init(limits: Limits = Limits()) { self.limits = limits }

    // MARK: Reading

    /// Returns all entries, oldest first.
    var all: [Entry] { entries.values.flatMap(\.self).sorted { Self.isOlder($0, $1) } }

    func entry(_ key: Cookie.Key) -> Entry? { entries[key.domain]?.first { $0.cookie.key == key } }

    /// The cookies for a request (RFC 6265bis §5.8.3), in the order of sending: longer paths first, then older cookies.
    ///
    /// - Returns: The cookies, and the earliest time at which one of them expires.
    mutating func cookies(for site: CookieSite, at now: Date) -> (cookies: [Cookie], expiry: Date?) {
        guard count > 0 else { return ([], nil) }
        lastStep += 1
        var found: [Entry] = []
        var expiry: Date?
        for domain in Self.domains(of: site.host) {
            guard let bucket = entries[domain] else { continue }
            for index in bucket.indices where Self.isSent(bucket[index].cookie, to: site, at: now) {
                entries[domain]?[index].used = lastStep
                found.append(bucket[index])
                if let time = bucket[index].cookie.expires { expiry = min(time, expiry ?? time) }
            }
        }
        found.sort { one, other in
            let (length, otherLength) = (one.cookie.path.utf8.count, other.cookie.path.utf8.count)
            return length == otherLength ? Self.isOlder(one, other) : length > otherLength
        }
        return (found.map(\.cookie), expiry)
    }

    private static func isSent(_ cookie: Cookie, to site: CookieSite, at now: Date) -> Bool {
        if cookie.isHostOnly ? site.host != cookie.domain : !CookieRules.matches(host: site.host, domain: cookie.domain)
        {
            return false
        }
        return CookieRules.matches(path: site.path, cookiePath: cookie.path) && (site.isSecure || !cookie.isSecure)
            && !cookie.isExpired(at: now)
    }

    private static func isOlder(_ one: Entry, _ other: Entry) -> Bool {
        one.cookie.created == other.cookie.created
            ? one.order < other.order : one.cookie.created < other.cookie.created
    }

    /// Returns a host and the domains above it.
    private static func domains(of host: String) -> [String] {
        var domains = [host]
        var rest = host[...]
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if !rest.isEmpty { domains.append(String(rest)) }
        }
        return domains
    }

    // MARK: Writing

    /// Stores a cookie that the rules have accepted.
    ///
    /// - Parameters:
    ///   - cookie: The cookie; it keeps the creation time of the cookie that it replaces. An expired cookie only
    ///     removes the cookie that it would replace.
    ///   - isSecure: Whether the origin may replace and hide secure cookies.
    ///   - now: The present time.
    /// - Returns: The effects: the end of an old cookie and the storage of the new one, then the evicted cookies.
    /// - Throws: `hidesSecureCookie`; then nothing has changed.
    mutating func store(
        _ cookie: Cookie, isSecure: Bool, at now: Date
    ) throws(Cookie.Refusal.Reason) -> [Effect] {
        if !isSecure, hidesSecureCookie(cookie, at: now) { throw .hidesSecureCookie }
        lastStep += 1
        var effects: [Effect] = []
        var old = remove(cookie.key)
        if let ended = old, cookie.isExpired(at: now) || ended.cookie.isExpired(at: now) {
            effects.append(.removed(ended.cookie, .expired))
            old = nil
        }
        if !cookie.isExpired(at: now) {
            let stored = old.map { cookie.with(created: $0.cookie.created) } ?? cookie
            insert(Entry(cookie: stored, order: old?.order ?? lastStep, used: lastStep, changed: now))
            effects.append(.stored(stored, replaced: old?.cookie))
        }
        return effects + evict(from: cookie.domain, at: now)
    }

    /// Stores a cookie of a file as it is.
    ///
    /// - Parameter known: The entry of the cookie in the jar, whose order and last use it keeps.
    mutating func restore(_ cookie: Cookie, changed: Date, as known: Entry?) {
        lastStep += 1
        remove(cookie.key)
        insert(Entry(cookie: cookie, order: known?.order ?? lastStep, used: known?.used ?? 0, changed: changed))
    }

    /// Returns a table without cookies, with the same limits and step numbers.
    func emptied() -> CookieTable {
        var table = CookieTable(limits: limits)
        table.lastStep = lastStep
        return table
    }

    /// Returns the effects that change this table into another one.
    func differences(to other: CookieTable) -> [Effect] {
        let removed = all.filter { other.entry($0.cookie.key) == nil }.map { Effect.removed($0.cookie, .removed) }
        let stored = other.all.compactMap { entry -> Effect? in
            let old = self.entry(entry.cookie.key)?.cookie
            return old == entry.cookie ? nil : .stored(entry.cookie, replaced: old)
        }
        return removed + stored
    }

    private mutating func insert(_ entry: Entry) {
        entries[entry.cookie.domain, default: []].append(entry)
        count += 1
    }

    /// Whether a cookie without TLS would be sent instead of a secure one (RFC 6265bis §5.7, step 16).
    private func hidesSecureCookie(_ cookie: Cookie, at now: Date) -> Bool {
        entries.contains { domain, entries in
            guard
                CookieRules.matches(host: domain, domain: cookie.domain)
                    || CookieRules.matches(host: cookie.domain, domain: domain)
            else { return false }
            return entries.contains { entry in
                entry.cookie.name == cookie.name && entry.cookie.isSecure && !entry.cookie.isExpired(at: now)
                    && CookieRules.matches(path: cookie.path, cookiePath: entry.cookie.path)
            }
        }
    }

    /// Removes a cookie and returns its entry.
    @discardableResult
    mutating func remove(_ key: Cookie.Key) -> Entry? {
        guard var bucket = entries.removeValue(forKey: key.domain) else { return nil }
        defer { if !bucket.isEmpty { entries[key.domain] = bucket } }
        guard let index = bucket.firstIndex(where: { $0.cookie.key == key }) else { return nil }
        count -= 1
        return bucket.remove(at: index)
    }

    /// Removes the cookies that satisfy a condition, and returns them, oldest first.
    mutating func removeAll(where matches: (Cookie) -> Bool) -> [Cookie] {
        let removed = all.map(\.cookie).filter(matches)
        for cookie in removed { remove(cookie.key) }
        return removed
    }

    // MARK: Limits

    /// Removes cookies until the limits are kept (RFC 6265bis §5.7): first expired ones, then insecure ones of the
    /// domain, then any of the domain, then any; each time the cookies that were not used for the longest time.
    private mutating func evict(from domain: String, at now: Date) -> [Effect] {
        var effects: [Effect] = []
        if let bucket = entries[domain], bucket.contains(where: { $0.cookie.isExpired(at: now) }) {
            effects += removeExpired(in: bucket, at: now)
        }
        while let bucket = entries[domain], bucket.count > limits.perDomain {
            let insecure = bucket.filter { !$0.cookie.isSecure }
            effects += evictLeastRecentlyUsed(of: insecure.isEmpty ? bucket : insecure)
        }
        guard count > limits.total else { return effects }
        effects += removeExpired(in: entries.values.flatMap(\.self), at: now)
        guard count > limits.total else { return effects }
        // A table of a file may have many cookies too many, so they are sorted only once.
        let oldest = entries.values.flatMap(\.self).sorted { ($0.used, $0.order) < ($1.used, $1.order) }
        return effects + oldest.prefix(count - limits.total).map { evict($0) }
    }

    /// Removes cookies until the limits are kept, after a file was read.
    mutating func evictAll(at now: Date) -> [Effect] {
        entries.keys.sorted().flatMap { evict(from: $0, at: now) }
    }

    private mutating func removeExpired(in bucket: [Entry], at now: Date) -> [Effect] {
        bucket.filter { $0.cookie.isExpired(at: now) }.map { entry in
            remove(entry.cookie.key)
            return .removed(entry.cookie, .expired)
        }
    }

    private mutating func evictLeastRecentlyUsed(of entries: [Entry]) -> [Effect] {
        guard let entry = entries.min(by: { ($0.used, $0.order) < ($1.used, $1.order) }) else { return [] }
        return [evict(entry)]
    }

    private mutating func evict(_ entry: Entry) -> Effect {
        remove(entry.cookie.key)
        return .removed(entry.cookie, .evicted)
    }
}
