// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

/// A value that the machine normally reports and a test sets, such as the network path of a session.
///
/// ```swift
/// let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
/// let session = Session(path: network.monitor)
/// network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("eth0"))
/// ```
///
/// Any thread may read and set the value. Readers receive a change asynchronously, possibly after the setter has
/// returned. A change of a member, such as `network.value.status = .satisfied`, reads the value and then sets it, in
/// two steps.
public final class Simulated<Value: Sendable & Equatable>: Sendable {
    private let state: Lock<Value>
    private let signal = Signal()

    /// Creates an object with its first value.
    ///
    /// - Parameter value: The value that readers receive first.
    public init(_ value: Value) { state = Lock(value) }

    /// The present value; all readers of ``values`` receive a change.
    public var value: Value {
        get { state.withLock { $0 } }
        set {
            state.withLock { $0 = newValue }
            signal.send()
        }
    }

    /// A stream for one reader: the present value, then the newest value after each change.
    ///
    /// The reader never receives the same value twice in a row. The stream ends with the cancellation of its task.
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
    /// A monitor that reports this path, for `Session(path:)` and for code with a parameter for a monitor.
    public var monitor: PathMonitor { PathMonitor { [self] in values } }
}

extension Simulated where Value == MemoryPressure.Level {
    /// Memory pressure with this level, for `HTTPCache.MemoryStore` and for code with a parameter for memory pressure.
    public var pressure: MemoryPressure { MemoryPressure { [self] in values } }
}
