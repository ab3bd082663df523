// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewShims
import Glibc
import Testing

@testable import CurlewEngine

@Suite("Wake-up pairs", .timeLimit(.minutes(5)))
struct WakeUpTests {
    /// The socket pairs of the program itself must stay open on exec, even while libcurl creates pairs.
    @Test func onlyLibcurlsSocketPairsAreMarkedCloseOnExec() throws {
        let pairs = try (0..<4).map { _ in
            var ends: [CInt] = [0, 0]
            try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
            return (ends[0], ends[1])
        }
        defer {
            for (near, far) in pairs {
                close(near)
                close(far)
            }
        }
        let isOver = Lock(false)
        let threads = try pairs.map { near, far in
            try TestThread {
                var byte: UInt8 = 0
                while !isOver.withLock({ $0 }) {
                    write(near, "x", 1)
                    read(far, &byte, 1)
                }
            }
        }
        for _ in 0..<1000 {
            let multi = try #require(curl_multi_init())
            curlew_close_wakeup_on_exec(multi)
            curl_multi_cleanup(multi)
        }
        isOver.withLock { $0 = true }
        for thread in threads { thread.join() }
        for (near, far) in pairs {
            #expect(fcntl(near, F_GETFD) & FD_CLOEXEC == 0)
            #expect(fcntl(far, F_GETFD) & FD_CLOEXEC == 0)
        }
    }
}
