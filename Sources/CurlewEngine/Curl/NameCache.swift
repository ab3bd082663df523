// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// Addresses that a look-up found, until they are too old.
final class ResolvedName {
    let addresses: [String]
    let until: UInt64

    init(_ addresses: [String], until: UInt64) {
        self.addresses = addresses
        self.until = until
    }
}

/// What the session knows about names, and who waits to know more.
struct NameCache {
    /// How long addresses are used, in nanoseconds; libcurl is told to keep them somewhat longer.
    static let lifetime: UInt64 = 60_000_000_000

    /// One look-up on its way, and the transfers that wait for it.
    struct Search {
        var ticket: Resolver.Ticket?
        var waiting: [EngineTransfer] = []
    }

    /// How long a name that has no addresses is not looked up again, in nanoseconds: those who wait for it in a line would
    /// ask one after the other.
    private static let failureLifetime: UInt64 = 1_000_000_000
    /// How many names are remembered.
    private static let size = 1024

    /// Tells look-ups of this session from those of others.
    let session = curlew_next_id()
    private var names: [String: ResolvedName] = [:]
    private var failures: [String: (text: String, until: UInt64)] = [:]
    var searches: [String: Search] = [:]

    func addresses(of name: String, now: UInt64) -> ResolvedName? {
        guard let known = names[name], known.until > now else { return nil }
        return known
    }

    /// The addresses that were found last, unless that is long ago.
    func lastAddresses(of name: String, now: UInt64) -> ResolvedName? {
        guard let known = names[name], now < known.until &+ 10 * NameCache.lifetime else { return nil }
        return known
    }

    /// Forgets everything but the look-ups that are running.
    mutating func forget() {
        names = [:]
        failures = [:]
    }

    /// Why a name was not found a moment ago.
    func failure(of name: String, now: UInt64) -> String? {
        guard let known = failures[name], known.until > now else { return nil }
        return known.text
    }

    mutating func learn(_ name: String, _ answer: Resolver.Answer, now: UInt64) {
        switch answer {
        case .success(let addresses):
            if names.count >= NameCache.size { names = names.filter { $0.value.until > now } }
            if names.count >= NameCache.size { names.removeAll() }
            names[name] = ResolvedName(addresses, until: now &+ NameCache.lifetime)
            failures[name] = nil
        case .failure(.unknown(let text)):
            if failures.count >= NameCache.size { failures.removeAll() }
            failures[name] = (text, now &+ NameCache.failureLifetime)
        case .failure(.noThread): break
        }
    }

    /// Whether a host is a name that some service has to look up: no address, and not localhost (RFC 6761 §6.3).
    static func needsLookUp(_ host: String) -> Bool {
        if host.isEmpty || host.utf8.contains(UInt8(ascii: ":")) { return false }
        let label = host.utf8.split(separator: UInt8(ascii: ".")).last ?? Substring(host).utf8
        // A name whose last label is a number is no name (RFC 3986 §3.2.2, URL Standard).
        if label.allSatisfy({ (48...57).contains($0) }) { return false }
        return host != "localhost" && !host.hasSuffix(".localhost")
    }
}
