// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Timeouts in the engine's nanoseconds; the timeouts of a session are converted only once.
struct EngineTimes: Sendable {
    let connect: UInt64
    let head: UInt64?
    let idle: UInt64?
    let minimumRate: (bytes: Int64, within: UInt64)?
    let queue: UInt64?
    let total: UInt64?

    /// The default timeouts.
    private static let usual = EngineTimes(Timeouts())

    /// Returns the time limit for the response head: no limit for a request of an event stream with the default limit,
    /// because some servers send the head together with the first event.
    func head(for request: Request) -> UInt64? {
        guard head == EngineTimes.usual.head, let accept = request.fields[.accept] else { return head }
        return accept.lowercased().contains("text/event-stream") ? nil : head
    }

    init(_ timeouts: Timeouts) {
        connect = timeouts.connect.engineTime
        head = timeouts.responseHead?.engineTime
        idle = timeouts.idle?.engineTime
        minimumRate = timeouts.minimumRate.map { (bytes: $0.bytes.bytes, within: $0.within.engineTime) }
        queue = timeouts.queue?.engineTime
        total = timeouts.total?.engineTime
    }
}

extension TransferPlan {
    mutating func take(_ times: EngineTimes, for request: Request) {
        connectTimeout = times.connect
        headTimeout = times.head(for: request)
        idleTimeout = times.idle
        minimumRate = times.minimumRate
        queueTimeout = times.queue
        totalTimeout = times.total
    }
}

extension Duration {
    /// Nanoseconds for the engine: at least zero, at most about 31 years.
    var engineTime: UInt64 {
        let (seconds, attoseconds) = asWait.components
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
}
