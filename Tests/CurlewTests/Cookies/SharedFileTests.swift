// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Glibc
import Testing

@testable import CurlewEngine

/// Files that several processes read and replace.
@Suite(.timeLimit(.minutes(5)))
struct SharedFileTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    /// Another process replaces the file after it was opened: its changes must not be lost.
    @Test func fileThatWasReplacedBeforeTheLockIsOpenedAgain() throws {
        let path = folder("file")
        folder.write("file", [1])
        let count = Lock(0)
        let file = SharedFile(path) {
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 {
                #expect(throws: Never.self) { try DiskFile.replace(path, with: [1, 2], isSynced: false) }
            }
        }
        try file.update { $0 + [3] }
        #expect(folder.bytes("file") == [1, 2, 3] && count.withLock(\.self) == 2)
    }

    @Test func lockOfAnotherProcessIsAwaitedForALimitedTime() throws {
        folder.write("file", [1])
        let number = open(folder("file"), O_RDONLY)
        defer { close(number) }
        #expect(flock(number, LOCK_EX) == 0)
        let error = #expect(throws: DiskFailure.self) {
            try SharedFile(folder("file"), patience: 10).update { $0 + [2] }
        }
        #expect(error?.errno == EWOULDBLOCK && folder.bytes("file") == [1])
        flock(number, LOCK_UN)
        try SharedFile(folder("file"), patience: 10).update { $0 + [2] }
        #expect(folder.bytes("file") == [1, 2])
    }

    @Test func contentsHaveALimit() throws {
        folder.write("file", [1])
        let error = #expect(throws: DiskFailure.self) {
            try SharedFile(folder("file"), limit: 2).update { $0 + [2, 3] }
        }
        #expect(error?.errno == EFBIG && folder.bytes("file") == [1] && folder.names == ["file"])
    }
}
