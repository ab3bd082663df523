// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A handler for Ctrl-C (SIGINT) and SIGTERM: the first signal is reported for a clean end, the second ends the
/// process.
///
/// The handler only writes the signal's number to a pipe, which a thread reads.
enum Interrupt {
    private static let arrivals = AsyncStream.makeStream(of: Int32.self)
    private static let pipe: (reader: Int32, writer: Int32) = {
        var ends: [Int32] = [-1, -1]
        return Glibc.pipe(&ends) == 0 ? (ends[0], ends[1]) : (-1, -1)
    }()

    /// Installs the handlers and returns a stream with the number of the first signal; call it only once.
    static func firstSignal() -> AsyncStream<Int32> {
        // Create the pipe here, because a signal handler must not create it.
        guard pipe.reader >= 0 else { return arrivals.stream }
        var thread = pthread_t()
        pthread_create(&thread, nil, { _ in Interrupt.wait() }, nil)
        for number in [SIGINT, SIGTERM] {
            signal(number) { number in
                var byte = UInt8(truncatingIfNeeded: number)
                write(Interrupt.pipe.writer, &byte, 1)
            }
        }
        return arrivals.stream
    }

    private static func wait() -> Never {
        arrivals.continuation.yield(next())
        _exit(128 + next())
    }

    private static func next() -> Int32 {
        var byte: UInt8 = 0
        while read(pipe.reader, &byte, 1) < 1, errno == EINTR {}
        return Int32(byte)
    }
}
