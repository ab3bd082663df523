// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// TLS sessions that several handles share; they are freed after the last handle, because libcurl refuses to free them
/// earlier.
final class TLSSessions {
    let share: UnsafeMutableRawPointer
    /// The time of creation on the monotonic clock.
    let bornAt: UInt64

    init?(at now: UInt64) {
        guard let share = curl_share_init() else { return nil }
        self.share = share
        bornAt = now
        _ = curlew_share_tls_sessions(share)
    }

    deinit {
        let code = curl_share_cleanup(share)
        assert(code == CURLSHE_OK, "a handle still uses the share, so it is never freed")
    }
}

/// The TLS sessions of a domain, spread over many shares: libcurl keeps the sessions of eight origins in one share, and
/// an arbitrary eight if there are more.
struct TLSShares {
    private struct Key: Hashable {
        var host: String
        var port: UInt16
    }

    /// The maximum number of shares, and the number of origins per share.
    static let maximum = 64
    static let originsPerShare = 8

    /// The share for handles that have no origin yet; without a share, libcurl would give each handle its own cache,
    /// and leak it when the handle gets a share.
    let first: TLSSessions
    private var shares: [TLSSessions]
    private var numbers: [Key: Int] = [:]
    /// The origins with a share, in the order of their first use; when the list is full, new origins replace the first
    /// ones.
    private var keys: [Key] = []
    private var assigned = 0
    /// Nanoseconds after which sessions are dropped, so that servers are evaluated again: each resumption creates a new
    /// session, so resumption could otherwise continue forever.
    private let lifetime: UInt64

    init?(lifetime: UInt64, now: UInt64) {
        guard let first = TLSSessions(at: now) else { return nil }
        self.first = first
        self.lifetime = lifetime
        shares = [first]
    }

    /// The number of shares that were made.
    var count: Int { shares.count }

    /// Whether sessions are too old to be resumed.
    func areExpired(_ sessions: TLSSessions, now: UInt64) -> Bool { now >= end(of: sessions) }

    func end(of sessions: TLSSessions) -> UInt64 { sessions.bornAt &+ lifetime }

    /// Returns the share of an origin's sessions: always the same one, unless hundreds of other origins were used in
    /// between or the sessions have expired.
    mutating func sessions(of origin: Origin, now: UInt64) -> TLSSessions {
        let key = Key(host: origin.host, port: origin.port)
        if let number = numbers[key] {
            return fresh(number, now: now)
        }
        let number = assigned % TLSShares.maximum
        if number >= shares.count {
            guard let made = TLSSessions(at: now) else { return first }
            shares.append(made)
        }
        let slot = assigned % (TLSShares.maximum * TLSShares.originsPerShare)
        if slot < keys.count {
            numbers[keys[slot]] = nil
            keys[slot] = key
        } else {
            keys.append(key)
        }
        numbers[key] = number
        assigned += 1
        return fresh(number, now: now)
    }

    private mutating func fresh(_ number: Int, now: UInt64) -> TLSSessions {
        if areExpired(shares[number], now: now), let made = TLSSessions(at: now) { shares[number] = made }
        return shares[number]
    }
}
