// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Request tags")
struct RequestTagsTests {
    enum Screen: Request.Tag { typealias Value = String }
    enum Attempt: Request.Tag { typealias Value = Int }
    enum Perhaps: Request.Tag { typealias Value = Int? }
    /// A tag with the same name as `Screen` of the suite.
    enum Other { enum Screen: Request.Tag { typealias Value = String } }

    @Test func tagsKeepTheirValues() {
        var request: Request = "https://h/"
        #expect(request.tags.isEmpty)
        #expect(request.tags[Screen.self] == nil)
        request.tags[Screen.self] = "checkout"
        request.tags[Attempt.self] = 1
        request.tags[Other.Screen.self] = "elsewhere"
        request.tags[Attempt.self]? += 1
        #expect(request.tags[Screen.self] == "checkout")
        #expect(request.tags[Attempt.self] == 2)
        #expect(request.tags[Other.Screen.self] == "elsewhere")
        #expect(!request.tags.isEmpty)
    }

    @Test func nilRemovesATag() {
        var tags = Request.Tags()
        tags[Attempt.self] = 1
        tags[Attempt.self] = nil
        #expect(tags.isEmpty && tags[Attempt.self] == nil)
    }

    @Test func tagValueMayBeOptional() {
        var tags = Request.Tags()
        tags[Perhaps.self] = .some(nil)
        #expect(tags[Perhaps.self] == .some(nil))
        #expect(!tags.isEmpty)
        tags[Perhaps.self] = .some(3)
        #expect(tags[Perhaps.self] == 3)
    }

    @Test func tagsAreCopiedByValue() {
        var first: Request = "https://h/"
        first.tags[Attempt.self] = 1
        var second = first
        second.tags[Attempt.self] = 2
        #expect(first.tags[Attempt.self] == 1)
        #expect(second.tags[Attempt.self] == 2)
    }

    @Test func descriptionShowsTagNamesWithoutValues() {
        var request: Request = "https://h/"
        #expect("\(request.tags)" == "[]")
        request.tags[Screen.self] = "secret"
        request.tags[Attempt.self] = 4711
        #expect("\(request.tags)" == "[Attempt, Screen]")
        var dumped = ""
        dump(request.tags, to: &dumped)
        dump(request, to: &dumped)
        #expect(!dumped.contains("secret") && !dumped.contains("4711"))
    }
}
