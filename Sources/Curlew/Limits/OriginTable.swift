// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What is remembered of one origin.
protocol OriginRecord {
    /// What is known of an origin that was never met, or was forgotten.
    init()
    /// Whether a request is under way that counts on it, so that it must not be forgotten.
    var isInUse: Bool { get }
}

/// What is remembered of the origins met last, so that memory is bounded however many there are.
struct OriginTable<Record: OriginRecord> {
    private struct Entry {
        var record = Record()
        var usedAt: UInt64 = 0
    }

    /// How many origins are remembered, beside those in use.
    static var capacity: Int { 256 }

    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    /// How many origins are remembered.
    var count: Int { entries.count }

    /// Reads or changes what is remembered of an origin, in place.
    mutating func change<Value>(_ origin: String, _ body: (inout Record) -> Value) -> Value {
        uses += 1
        entries[origin, default: Entry()].usedAt = uses
        defer { if entries.count > Self.capacity { forgetOldest(but: origin) } }
        return body(&entries[origin, default: Entry()].record)
    }

    private mutating func forgetOldest(but latest: String) {
        let idle = entries.lazy.filter { !$0.value.record.isInUse && $0.key != latest }
        guard let oldest = idle.min(by: { $0.value.usedAt < $1.value.usedAt }) else { return }
        entries[oldest.key] = nil
    }
}

extension Request {
    /// Scheme, host and port: what limits, budgets and circuits belong to; nil where the URL is none.
    var origin: String? {
        guard let target = try? target() else { return nil }
        return "\(target.scheme.rawValue)://\(target.host):\(target.port)"
    }
}

extension Clock where Duration == Swift.Duration {
    /// Tells the time since now by this clock.
    func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: self.now) }
    }
}
