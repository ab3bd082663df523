// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The state kept for one origin.
protocol OriginRecord {
    /// Creates the state of an unknown or forgotten origin.
    init()
    /// Whether a running request depends on the state, so that it must not be forgotten.
    var isInUse: Bool { get }
}

/// The state of the origins used last; the capacity bounds its memory.
struct OriginTable<Record: OriginRecord> {
    private struct Entry {
        var record = Record()
        var usedAt: UInt64 = 0
    }

    /// How many origins are kept, in addition to those in use.
    static var capacity: Int { 256 }

    private var entries: [String: Entry] = [:]
    private var uses: UInt64 = 0

    /// How many origins are kept.
    var count: Int { entries.count }

    /// Reads or changes the state of an origin, in place.
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
    /// Scheme, host and port, the key of limits, budgets and circuits; nil when the URL is invalid.
    var origin: String? {
        guard let target = try? target() else { return nil }
        return "\(target.scheme.rawValue)://\(target.host):\(target.port)"
    }
}

extension Clock where Duration == Swift.Duration {
    /// Returns a function that measures the time since this call by this clock.
    func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: self.now) }
    }
}
