// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measuring: what a client of the benchmarks is told to do, and what it measures about itself. The C clients have the
// same in measure.c, and print the same line.

internal import Glibc

/// What was true just before the first request.
public struct Meter: Sendable {
    private let began: UInt64
    private let usage: Usage
    private let resident: Int

    /// Starts measuring; the high-water mark of resident memory starts afresh.
    public init() {
        resetPeakMemory()
        resident = statusKiB("VmRSS")
        usage = Usage()
        began = now()
    }

    /// Prints the line.
    ///
    /// - Parameters:
    ///   - latencies: How long each request took.
    ///   - requests: How many requests ended well.
    ///   - bytes: How many bytes of bodies were moved.
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

/// CPU time and context switches of the process so far.
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

/// Nanoseconds of the monotonic clock.
public func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Nanoseconds of CPU time that the process has had so far.
public func processTime() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Says what is wrong and ends the process.
///
/// - Parameter complaint: A sentence.
public func die(_ complaint: String) -> Never {
    complain(complaint)
    exit(1)
}
