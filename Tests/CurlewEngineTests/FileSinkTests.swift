// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Dispatch
import Glibc
import Testing

@testable import CurlewEngine

@Suite final class FileSinkTests {
    private let folder: String

    init() throws {
        var template = Array("/tmp/curlew-sink-XXXXXX".utf8CString)
        folder = String(cString: try #require(mkdtemp(&template)))
    }

    deinit { rmdir(folder) }

    /// Bytes written after a gap would be taken for the missing bytes.
    @Test func bytesAfterAFailedWriteAreNotWritten() async throws {
        let file = try PartialFile.open(folder + "/f.part")
        defer { file.remove() }
        // A write before the first byte of a file fails.
        let batch = [UInt8](repeating: 7, count: 256 << 10)
        let sink = FileSink(file, at: -Int64(batch.count)) { _ in }
        // A busy thread keeps both batches queued before the first fails.
        let busy = DispatchSemaphore(value: 0)
        #expect(DiskThread.saving.run(at: file.path) { busy.wait() })
        try await sink.append(Chunk(batch))
        try await sink.append(Chunk(batch))
        busy.signal()
        let failure = await #expect(throws: DiskFailure.self) { try await sink.flush() }
        #expect(failure?.errno == EINVAL)
        #expect(try file.size() == 0)
    }

    /// A notification after `flush` has returned would concern a range that is already over.
    @Test func flushReturnsAfterAllNotifications() async throws {
        let file = try PartialFile.open(folder + "/f.part")
        defer { file.remove() }
        let reported = Lock<Int64>(0)
        let sink = FileSink(file, at: 0) { end in
            // Long enough for a waiter that is resumed too early to continue.
            for _ in 0..<20 { sched_yield() }
            reported.withLock { $0 = end }
        }
        for turn in 1...3000 as ClosedRange<Int64> {
            try await sink.append(Chunk([7]))
            try await sink.flush()
            #expect(reported.withLock { $0 } == turn)
        }
        #expect(try file.size() == 3000)
    }
}
