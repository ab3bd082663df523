// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Resident memory before, during and after some work, in bytes.
public struct Residence: Sendable {
    /// What the process had before.
    public let before: Int
    /// The most it had meanwhile.
    public let peak: Int
    /// What it has afterwards, with the result alive and all else given back.
    public let after: Int

    /// Does the work and measures.
    ///
    /// - Parameter work: Gives what stays alive.
    /// - Throws: What the work throws.
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
