// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Glibc
import Testing

@Suite struct FileSinkTests {
    /// What somebody is told later than that would be about something that is over, such as a piece fetched before.
    @Test func whoWaitsWasToldOfEverything() async throws {
        var template = Array("/tmp/curlew-sink-XXXXXX".utf8CString)
        let made = try #require(mkdtemp(&template))
        let folder = String(cString: made)
        defer { rmdir(folder) }
        let file = try PartFile.open(folder + "/f.part")
        defer { file.remove() }
        let told = Lock<Int64>(0)
        let sink = FileSink(file, at: 0) { end in
            // Long enough for whoever waits to go on meanwhile.
            for _ in 0..<20 { sched_yield() }
            told.withLock { $0 = end }
        }
        for turn in 1...3000 as ClosedRange<Int64> {
            try await sink.append(Chunk([7]))
            try await sink.flush()
            #expect(told.withLock { $0 } == turn)
        }
        #expect(try file.size() == 3000)
    }
}
