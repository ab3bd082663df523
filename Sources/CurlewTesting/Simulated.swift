// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

/// A fact about the machine that a test sets, such as the connection of a session.
///
/// ```swift
/// let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
/// let session = Session(path: network.monitor)
/// // …
/// network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("wlan0", kind: .wifi))
/// ```
///
/// Any thread may set the value.
public final class Simulated<Value: Sendable & Equatable>: Sendable {
    private let state: Lock<Value>
    private let signal = Signal()

    /// Creates a fact with its first value.
    public init(_ value: Value) { state = Lock(value) }

    /// The present value; a change reaches all readers of ``values``.
    public var value: Value {
        get { state.withLock { $0 } }
        set {
            state.withLock { $0 = newValue }
            signal.send()
        }
    }

    /// The present value, then the newest value after each change; a reader never gets the same value twice in a row.
    public var values: AsyncStream<Value> {
        let last = Lock<Value?>(nil)
        return AsyncStream { [state, signal] in
            while true {
                let seen = signal.count
                let now = state.withLock { $0 }
                let isNew = last.withLock { last in
                    defer { last = now }
                    return last != now
                }
                if isNew { return now }
                guard await signal.wait(after: seen) else { return nil }
            }
        }
    }
}

extension Simulated where Value == PathMonitor.Path {
    /// A monitor that shows this path, for `Session(path:)` and for code that takes a monitor.
    public var monitor: PathMonitor { PathMonitor { [self] in values } }
}

extension Simulated where Value == MemoryPressure.Level {
    /// Memory pressure with this level, for `HTTPCache.MemoryStore` and other code that takes it.
    public var pressure: MemoryPressure { MemoryPressure { [self] in values } }
}
