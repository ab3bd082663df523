// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Resident memory before, during and after some work, in bytes.
public struct MemoryUse: Sendable {
    /// The memory before the work.
    public let before: Int
    /// The peak during the work.
    public let peak: Int
    /// The memory afterwards, with the result alive and all other memory returned to the kernel.
    public let after: Int

    /// Runs the work and measures it.
    ///
    /// - Parameter work: The work; its result stays alive during the last measurement.
    /// - Throws: The error of the work.
    public init<Value>(of work: () throws -> Value) rethrows {
        trimHeap()
        before = statusKiB("VmRSS") << 10
        resetPeakMemory()
        let value = try work()
        peak = statusKiB("VmHWM") << 10
        trimHeap()
        after = statusKiB("VmRSS") << 10
        withExtendedLifetime(value) {}
    }
}
