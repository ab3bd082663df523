// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

/// The libcurl of the tests: the installed one, or a newer one selected by `Scripts/newer-libcurl`.
enum LibcurlInUse {
    static let version = CurlVersion.current.number

    /// Whether it is newer than 7.88.
    static let isNewer = version >= 0x080000
}

/// A trait of tests that fail with a libcurl newer than 7.88 for a known reason that is not fixed yet.
struct DifferenceOfNewerLibcurl: TestTrait, TestScoping {
    let what: Comment

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withKnownIssue(what, isIntermittent: true, function, when: { LibcurlInUse.isNewer })
    }
}

extension Trait where Self == DifferenceOfNewerLibcurl {
    /// Treats the failures of a test as known issues if libcurl is newer than 7.88.
    ///
    /// - Parameter what: The behaviour of the newer libcurl.
    static func differsWithNewerLibcurl(_ what: Comment) -> Self { Self(what: what) }
}
