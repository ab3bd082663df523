// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The hosts of an HSTS store, as a pure value.
struct HSTSTable: Sendable {
    /// The maximum number of hosts.
    static let maximum = 10_000
    /// The number of hosts that remain after an eviction, which removes many at once because it sorts all of them.
    private static let rest = 9000

    private var entries: [String: HSTSStore.Host] = [:]

    /// Creates a table; of too many hosts, those that expire last are kept.
    init(_ hosts: some Sequence<HSTSStore.Host> = []) {
        for host in hosts.sorted(by: { $0.expires > $1.expires }) {
            if entries.count == Self.maximum { break }
            // Of several policies of a host, the one that expires last counts.
            if entries[host.name] == nil { entries[host.name] = host }
        }
    }

    var count: Int { entries.count }

    /// The hosts whose policies have not expired, by name.
    func hosts(at now: Date) -> [HSTSStore.Host] {
        entries.values.filter { $0.expires > now }.sorted { $0.name < $1.name }
    }

    subscript(name: String) -> HSTSStore.Host? { entries[name] }

    /// Whether requests to a host must use https: it has a policy, or a domain above it has one that includes its
    /// subdomains (RFC 6797 §8.2).
    func isKnown(_ host: String, at now: Date) -> Bool {
        if entries.isEmpty { return false }
        if let own = entries[host], own.expires > now { return true }
        var rest = host[...]
        while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
            rest = rest[rest.utf8.index(after: dot)...]
            if let domain = entries[String(rest)], domain.includesSubdomains, domain.expires > now { return true }
        }
        return false
    }

    mutating func set(_ host: HSTSStore.Host, at now: Date) {
        entries[host.name] = host
        evict(at: now) { $0 == host.name }
    }

    /// Removes hosts that have expired, then those that expire first, if there are too many; new ones go last.
    private mutating func evict(at now: Date, isNew: (String) -> Bool) {
        guard entries.count > Self.maximum else { return }
        entries = entries.filter { $0.value.expires > now }
        guard entries.count > Self.maximum else { return }
        let hosts = entries.values.map { (isNew: isNew($0.name), host: $0) }
        let first = hosts.sorted { $0.isNew == $1.isNew ? $0.host.expires < $1.host.expires : !$0.isNew }
        for (_, host) in first.prefix(entries.count - Self.rest) { entries[host.name] = nil }
    }

    /// Removes the policy of a host; returns whether there was one.
    @discardableResult
    mutating func remove(_ name: String) -> Bool { entries.removeValue(forKey: name) != nil }

    mutating func removeAll() { entries = [:] }

    /// Applies changes; nil removes a host.
    mutating func apply(_ changes: [String: HSTSStore.Host?], at now: Date) {
        for (name, host) in changes { entries[name] = host }
        evict(at: now) { changes[$0] != nil }
    }
}

/// The contents of an HSTS file in libcurl's format: a host, with a dot in front if it includes its subdomains, and its
/// expiry as "YYYYMMDD HH:MM:SS" in quotation marks.
enum HSTSFile {
    private static let comment = "# Hosts that require https. Written by Curlew in the format of curl."
    /// The start of the file that curl writes.
    private static let commentOfCurl = "# Your HSTS cache."

    /// Parses a file; invalid lines and hosts that have expired are left out.
    ///
    /// - Returns: The hosts; nil for contents that are not empty and have neither a valid line nor the first comment of
    ///   Curlew or curl, since that is another file.
    static func hosts(_ bytes: [UInt8], now: Date) -> [HSTSStore.Host]? {
        var hosts: [HSTSStore.Host] = []
        var isRecognised = false
        var isEmpty = true
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            if line.allSatisfy(\.isWhitespace) { continue }
            isEmpty = false
            if line.hasPrefix("#") {
                isRecognised = isRecognised || line == comment || line.hasPrefix(commentOfCurl)
                continue
            }
            guard let host = host(line) else { continue }
            isRecognised = true
            if host.expires > now { hosts.append(host) }
        }
        return isRecognised || isEmpty ? hosts : nil
    }

    private static func host(_ line: Substring) -> HSTSStore.Host? {
        let parts = line.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let includesSubdomains = parts[0].hasPrefix(".")
        let name = includesSubdomains ? parts[0].dropFirst() : parts[0]
        let text = parts[1].filter { $0 != "\"" }
        guard let key = HostName.key(name), !HostName.isAddress(key), let expires = date(text) else { return nil }
        return HSTSStore.Host(key, includesSubdomains: includesSubdomains, expires: expires)
    }

    private static func date(_ text: String) -> Date? {
        if text == "unlimited" { return .distantFuture }
        let parts = text.split(separator: " ")
        guard parts.count == 2, parts[0].count == 8, let day = Int(parts[0]) else { return nil }
        let clock = parts[1].split(separator: ":").compactMap { Int($0) }
        guard clock.count == 3, 0..<24 ~= clock[0], 0..<60 ~= clock[1], 0...60 ~= clock[2],
            let midnight = HTTPDate.seconds(year: day / 10_000, month: day / 100 % 100, day: day % 100)
        else { return nil }
        return Date(timeIntervalSince1970: Double(midnight + Int64(clock[0] * 3600 + clock[1] * 60 + clock[2])))
    }

    static func bytes(_ hosts: [HSTSStore.Host]) -> [UInt8] {
        let lines = hosts.map { host in
            // The basic form of ISO 8601: 20261231T235959Z.
            let time = HTTPDate(host.expires).basicISO8601
            let clock = Array(time.dropFirst(9).dropLast())
            let text =
                host.expires == .distantFuture
                ? "unlimited"
                : "\(time.prefix(8)) \(String(clock[0..<2])):\(String(clock[2..<4])):\(String(clock[4..<6]))"
            return "\(host.includesSubdomains ? "." : "")\(host.name) \"\(text)\""
        }
        return Array(([comment] + lines + [""]).joined(separator: "\n").utf8)
    }
}
