// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measuring: the arguments of a benchmark client, and its measurements of itself. measure.c does the same for the C
// clients and prints a line in the same format.

internal import Glibc

/// The state of the process just before the first request.
public struct Meter: Sendable {
    private let began: UInt64
    private let usage: Usage
    private let resident: Int

    /// Starts measuring and resets the peak of resident memory.
    public init() {
        resetPeakMemory()
        resident = statusKiB("VmRSS")
        usage = Usage()
        began = now()
    }

    /// Prints the line of results.
    ///
    /// - Parameters:
    ///   - latencies: The durations of the requests.
    ///   - requests: The number of successful requests.
    ///   - bytes: The number of transferred body bytes.
    public func finish(_ latencies: Histogram, requests: Int, bytes: Int) {
        let wall = Double(now() - began) / 1e9
        let end = Usage()
        let members = [
            ("requests", "\(requests)"), ("bytes", "\(bytes)"), ("wall", "\(wall)"),
            ("user", "\(end.user - usage.user)"), ("sys", "\(end.system - usage.system)"),
            ("p50", "\(latencies.microseconds(at: 0.5))"), ("p99", "\(latencies.microseconds(at: 0.99))"),
            ("rss_base", "\(resident)"), ("rss_peak", "\(statusKiB("VmHWM"))"),
            ("voluntary", "\(end.voluntary - usage.voluntary)"),
            ("involuntary", "\(end.involuntary - usage.involuntary)"),
        ]
        print("{" + members.map { "\"\($0.0)\": \($0.1)" }.joined(separator: ", ") + "}")
    }
}

/// The CPU time and context switches of the process so far.
struct Usage: Sendable {
    let user: Double
    let system: Double
    let voluntary: Int
    let involuntary: Int

    init() {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        user = Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1e6
        system = Double(usage.ru_stime.tv_sec) + Double(usage.ru_stime.tv_usec) / 1e6
        voluntary = usage.ru_nvcsw
        involuntary = usage.ru_nivcsw
    }
}

/// Returns the time of the monotonic clock in nanoseconds.
public func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Returns the CPU time of the process so far in nanoseconds.
public func processTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Prints an error and ends the process.
///
/// - Parameter complaint: The error in one sentence.
public func die(_ complaint: String) -> Never {
    complain(complaint)
    exit(1)
}
