// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import CurlewSupport

/// The clock of a loop and of all that runs on it: the monotonic clock of the system, or a stub in tests.
package struct LoopClock: Sendable {
    package let stub: StubClock?

    package init(_ stub: StubClock? = nil) { self.stub = stub }

    /// Returns the time in nanoseconds.
    @inline(__always)
    package func now() -> UInt64 {
        guard let stub else { return Monotonic.now() }
        return stub.nanoseconds
    }

    /// The same clock for tasks that wait.
    package var taskClock: any Clock<Duration> {
        guard let stub else { return ContinuousClock() }
        return stub
    }
}
