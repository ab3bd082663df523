// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The cookies of a jar, as a pure value: storing, retrieving and removing (RFC 6265bis §5.7 and §5.8).
struct CookieTable: Sendable {
    /// A stored cookie.
    struct Entry: Sendable {
        var cookie: Cookie
        /// The registrable domain of the cookie, whose cookies share a limit.
        let owner: String
        /// The number of the step that created the cookie; it orders cookies with equal creation times.
        var order: UInt64
        /// The number of the step that last set the cookie or looked it up.
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
        /// For one registrable domain and its subdomains together, as in common browsers.
        ///
        /// Otherwise the owner of one domain could evict the cookies of all others. RFC 6265bis §6.1 requires at least
        /// 50 for each domain.
        var perOwner = 180
        /// For all domains together (RFC 6265bis §6.1).
        var total = 3000
    }

    private let limits: Limits
    /// Returns the registrable domain of a domain.
    private let owner: @Sendable (String) -> String
    /// The entries of each domain, in the order of their storage.
    private var entries: [String: [Entry]] = [:]
    /// The number of cookies of each owner.
    private var owned: [String: Int] = [:]
    private(set) var count = 0
    private var lastStep: UInt64 = 0

    init(limits: Limits = Limits(), owner: @escaping @Sendable (String) -> String = { $0 }) {
        self.limits = limits
        self.owner = owner
    }

    // MARK: Reading

    /// Returns all entries, oldest first.
    var all: [Entry] { entries.values.flatMap(\.self).sorted { Self.isOlder($0, $1) } }

    /// All cookies for a file.
    var records: [CookieFile.Record] { all.map { CookieFile.Record(cookie: $0.cookie, changed: $0.changed) } }

    func entry(_ key: Cookie.Key) -> Entry? { entries[key.domain]?.first { $0.cookie.key == key } }

    /// The cookies for a request (RFC 6265bis §5.8.3), in the order of sending: longer paths first, then older cookies.
    ///
    /// - Returns: The cookies, and the earliest time at which one of them expires.
    mutating func cookies(for target: CookieTarget, at now: Date) -> (cookies: [Cookie], expiry: Date?) {
        guard count > 0 else { return ([], nil) }
        lastStep += 1
        var found: [Entry] = []
        var expiry: Date?
        for domain in Self.domains(of: target.host) {
            guard let bucket = entries[domain] else { continue }
            for index in bucket.indices where Self.isSent(bucket[index].cookie, to: target, at: now) {
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

    private static func isSent(_ cookie: Cookie, to target: CookieTarget, at now: Date) -> Bool {
        if cookie.isHostOnly
            ? target.host != cookie.domain : !CookieRules.matches(host: target.host, domain: cookie.domain)
        {
            return false
        }
        return CookieRules.matches(path: target.path, cookiePath: cookie.path) && (target.isSecure || !cookie.isSecure)
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
            let owner = old?.owner ?? owner(cookie.domain)
            insert(Entry(cookie: stored, owner: owner, order: old?.order ?? lastStep, used: lastStep, changed: now))
            effects.append(.stored(stored, replaced: old?.cookie))
            if let bucket = entries[cookie.domain], bucket.contains(where: { $0.cookie.isExpired(at: now) }) {
                effects += remove(bucket.filter { $0.cookie.isExpired(at: now) }, reason: .expired)
            }
            effects += evict(from: owner, at: now)
        }
        return effects + evict(at: now)
    }

    /// Returns a table with the cookies of a file.
    ///
    /// - Parameters:
    ///   - records: The cookies of the file; those that this table has already keep their order and last use.
    ///   - keeps: Whether the table keeps a cookie that is not in the file.
    ///   - now: The present time.
    /// - Returns: The table, and the evicted cookies.
    func replaced(
        by records: [CookieFile.Record], keeping keeps: (Cookie) -> Bool, at now: Date
    ) -> (table: CookieTable, evicted: [Cookie]) {
        let known = byKey
        var merged = known.filter { keeps($0.value.cookie) }
        var table = CookieTable(limits: limits, owner: owner)
        table.lastStep = lastStep
        for record in records {
            let key = record.cookie.key
            table.lastStep += 1
            merged[key] = Entry(
                cookie: known[key].flatMap { record.completed(by: $0.cookie) } ?? record.cookie,
                owner: known[key]?.owner ?? owner(record.cookie.domain), order: known[key]?.order ?? table.lastStep,
                used: known[key]?.used ?? table.lastStep, changed: record.changed ?? .distantPast)
        }
        for entry in merged.values.sorted(by: { $0.order < $1.order }) { table.insert(entry) }
        _ = table.remove(table.entries.values.joined().filter { $0.cookie.isExpired(at: now) }, reason: .expired)
        let effects = table.owned.keys.sorted().flatMap { table.evict(from: $0, at: now) } + table.evict(at: now)
        return (table, effects.compactMap { if case .removed(let cookie, .evicted) = $0 { cookie } else { nil } })
    }

    /// Makes this table equal to another one for some keys: copies the entry of each key, or removes it.
    mutating func copy(_ keys: some Sequence<Cookie.Key>, from other: CookieTable) {
        for key in keys {
            remove(key)
            if let entry = other.entry(key) { insert(entry) }
        }
        lastStep = max(lastStep, other.lastStep)
    }

    /// Returns the effects that change this table into another one.
    ///
    /// - Parameter evicted: The cookies that the other table has evicted.
    func differences(to other: CookieTable, evicted: [Cookie], at now: Date) -> [Effect] {
        let evicted = Set(evicted.map(\.key))
        let (before, after) = (byKey, other.byKey)
        let removed = all.compactMap { entry -> Effect? in
            let key = entry.cookie.key
            guard after[key] == nil else { return nil }
            return .removed(
                entry.cookie,
                entry.cookie.isExpired(at: now) ? .expired : evicted.contains(key) ? .evicted : .removed)
        }
        let stored = other.all.compactMap { entry -> Effect? in
            let old = before[entry.cookie.key]?.cookie
            return old == entry.cookie ? nil : .stored(entry.cookie, replaced: old)
        }
        return removed + stored
    }

    private var byKey: [Cookie.Key: Entry] {
        Dictionary(uniqueKeysWithValues: entries.values.joined().map { ($0.cookie.key, $0) })
    }

    private mutating func insert(_ entry: Entry) {
        entries[entry.cookie.domain, default: []].append(entry)
        owned[entry.owner, default: 0] += 1
        count += 1
    }

    /// Whether a cookie of a response without TLS would replace a secure one of the same name, or be sent before it
    /// (RFC 6265bis §5.7, step 16).
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
        let entry = bucket.remove(at: index)
        decrementCounts(for: entry)
        return entry
    }

    /// Removes the cookies that satisfy a condition, and returns them, oldest first.
    mutating func removeAll(where matches: (Cookie) -> Bool) -> [Cookie] {
        let removed = all.filter { matches($0.cookie) }
        _ = remove(removed, reason: .removed)
        return removed.map(\.cookie)
    }

    /// Removes entries of the table.
    private mutating func remove(_ removed: [Entry], reason: CookieJar.Removal) -> [Effect] {
        for (domain, removed) in Dictionary(grouping: removed, by: \.cookie.domain) {
            let keys = Set(removed.map(\.cookie.key))
            let rest = entries[domain]?.filter { !keys.contains($0.cookie.key) } ?? []
            entries[domain] = rest.isEmpty ? nil : rest
        }
        for entry in removed { decrementCounts(for: entry) }
        return removed.map { .removed($0.cookie, reason) }
    }

    private mutating func decrementCounts(for entry: Entry) {
        count -= 1
        owned[entry.owner] = owned[entry.owner].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    // MARK: Limits RFC 6265bis §5.7. Above the limit of an owner: its expired cookies, then those without `Secure`,
    // then others. Above the total limit: all expired cookies, then any others. Each time the least recently used
    // cookie goes first.

    /// Removes cookies of an owner until it keeps its limit.
    private mutating func evict(from owner: String, at now: Date) -> [Effect] {
        guard owned[owner] ?? 0 > limits.perOwner else { return [] }
        // All cookies of a domain have the same owner.
        let all = entries.values.filter { $0.first?.owner == owner }.flatMap(\.self)
        let expired = all.filter { $0.cookie.isExpired(at: now) }
        let rest = all.filter { !$0.cookie.isExpired(at: now) }.sorted { one, other in
            one.cookie.isSecure == other.cookie.isSecure ? Self.isLessRecent(one, other) : !one.cookie.isSecure
        }
        return remove(expired, reason: .expired)
            + remove(Array(rest.prefix(max(rest.count - limits.perOwner, 0))), reason: .evicted)
    }

    /// Removes cookies of any owner until the table keeps its limit.
    private mutating func evict(at now: Date) -> [Effect] {
        guard count > limits.total else { return [] }
        let expired = entries.values.joined().filter { $0.cookie.isExpired(at: now) }
        let effects = remove(expired, reason: .expired)
        guard count > limits.total else { return effects }
        let oldest = entries.values.flatMap(\.self).sorted(by: Self.isLessRecent)
        return effects + remove(Array(oldest.prefix(count - limits.total)), reason: .evicted)
    }

    private static func isLessRecent(_ one: Entry, _ other: Entry) -> Bool {
        (one.used, one.order) < (other.used, other.order)
    }
}
