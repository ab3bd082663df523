// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import FoundationEssentials
import Testing

@testable import Curlew

/// Several processes that share one cookie file.
@Suite(.timeLimit(.minutes(10)))
struct CookieProcessTests {
    @Test(arguments: CookieJar.FileFormat.allCases)
    func processesLoseNoCookieOfEachOther(_ format: CookieJar.FileFormat) async throws {
        let folder = try Folder()
        let path = folder("cookies")
        let count = 1000
        try await withThrowingTaskGroup(of: Int32.self) { group in
            for name in ["one", "two"] {
                group.addTask {
                    try await ChildProgram.run("curlew-jar", [path, format.rawValue, name, "\(count)"]).status
                }
            }
            for try await status in group { #expect(status == 0) }
        }
        let jar = try await CookieJar(file: path, format: format)
        #expect(jar.cookies.count == 2 * count && jar.skippedLines == [])
        for name in ["one", "two"] {
            let values = jar.cookies.filter { $0.domain.hasPrefix(name) }.map(\.value)
            // The order of the creation is kept.
            #expect(values == (0..<count).map { "\($0)" })
        }
        #expect(folder.names == ["cookies"])
    }
}
