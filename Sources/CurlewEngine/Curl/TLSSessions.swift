// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// TLS sessions that several handles share, freed after the last handle: libcurl refuses before.
final class TLSSessions {
    let share: UnsafeMutableRawPointer
    /// On the monotonic clock.
    let bornAt: UInt64

    init?(at now: UInt64) {
        guard let share = curl_share_init() else { return nil }
        self.share = share
        bornAt = now
        _ = curlew_share_tls_sessions(share)
    }

    deinit {
        let code = curl_share_cleanup(share)
        assert(code == CURLSHE_OK, "a handle still uses the share, which is never freed then")
    }
}

/// The TLS sessions of a domain, spread over many shares: libcurl keeps those of eight origins in one, and which eight is
/// chance as soon as there are more.
struct TLSShares {
    private struct Key: Hashable {
        var host: String
        var port: UInt16
    }

    /// How many shares there may be, and how many origins each of them has room for.
    static let most = 64
    static let room = 8

    /// What handles have that are for no origin yet; without a share, libcurl would give each its own cache, and leak it
    /// when the handle gets one.
    let first: TLSSessions
    private var shares: [TLSSessions]
    private var numbers: [Key: Int] = [:]
    /// The origins that have a share, in the order they came; those that come too late replace the first ones.
    private var keys: [Key] = []
    private var assigned = 0
    /// Nanoseconds after which sessions are forgotten, so that servers are judged anew: each resumption makes a session
    /// that could be resumed in turn, for ever.
    private let lifetime: UInt64

    init?(lifetime: UInt64, now: UInt64) {
        guard let first = TLSSessions(at: now) else { return nil }
        self.first = first
        self.lifetime = lifetime
        shares = [first]
    }

    /// How many shares have been made.
    var count: Int { shares.count }

    /// Whether sessions are too old to be resumed.
    func areOld(_ sessions: TLSSessions, now: UInt64) -> Bool { now >= end(of: sessions) }

    func end(of sessions: TLSSessions) -> UInt64 { sessions.bornAt &+ lifetime }

    /// Where the sessions of an origin are kept: always the same place, unless hundreds of others came in between, or they
    /// have become old.
    mutating func sessions(of origin: Origin, now: UInt64) -> TLSSessions {
        let key = Key(host: origin.host, port: origin.port)
        if let number = numbers[key] {
            return fresh(number, now: now)
        }
        let number = assigned % TLSShares.most
        if number >= shares.count {
            guard let made = TLSSessions(at: now) else { return first }
            shares.append(made)
        }
        let slot = assigned % (TLSShares.most * TLSShares.room)
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
        if areOld(shares[number], now: now), let made = TLSSessions(at: now) { shares[number] = made }
        return shares[number]
    }
}
