// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

/// The libcurl that the tests run with: the installed one, or a newer one that `Scripts/newer-libcurl` chose.
enum LibcurlInUse {
    static let version = CurlVersion.current.number

    /// Whether it is newer than 7.88.
    static let isNewer = version >= 0x080000
}

/// A test that fails with a libcurl newer than 7.88, for a reason that is known and not yet mended.
struct DifferenceOfNewerLibcurl: TestTrait, TestScoping {
    let what: Comment

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withKnownIssue(what, isIntermittent: true, function, when: { LibcurlInUse.isNewer })
    }
}

extension Trait where Self == DifferenceOfNewerLibcurl {
    /// Takes the failures of a test for known ones if libcurl is newer than 7.88.
    ///
    /// - Parameter what: What the newer one does.
    static func differsWithNewerLibcurl(_ what: Comment) -> Self { Self(what: what) }
}
