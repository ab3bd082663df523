// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

/// Tests that this target compiles all snippets of README.md, the guides and the doc comments.
@Suite struct SnippetTests {
    /// A block of Swift in a document or a doc comment.
    struct Snippet: Sendable, CustomTestStringConvertible {
        let place: String
        let code: String

        var testDescription: String { place }
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    private static func files(in folder: String, endingWith suffix: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
            .filter { $0.hasSuffix(suffix) }.map { "\(folder)/\($0)" }.sorted()
    }

    /// Returns the Swift blocks of a text whose lines begin with `prefix`, without the prefix and without imports.
    private static func snippets(_ path: String, linesWith prefix: String) throws -> [Snippet] {
        var snippets: [Snippet] = []
        var code: [Substring]?
        for (number, raw) in try text(path).split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = raw.drop { $0 == " " }
            guard line.hasPrefix(prefix) else { continue }
            let content = line.dropFirst(prefix.count)
            if let block = code, content.drop(while: { $0 == " " }).hasPrefix("```") {
                let place = "\(path):\(number + 1 - block.count)"
                snippets.append(Snippet(place: place, code: block.joined(separator: "\n")))
                code = nil
            } else if code == nil {
                if content.drop(while: { $0 == " " }) == "```swift" { code = [] }
            } else {
                code?.append(content.hasPrefix("import ") ? "" : content)
            }
        }
        return snippets
    }

    private static func normalised(_ text: String) -> String {
        text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    @Test func everySnippetIsCompiled() throws {
        var shown = try Self.snippets("README.md", linesWith: "")
        #expect(shown.count >= 4)
        for path in try Self.files(in: "Documentation", endingWith: ".md") {
            shown += try Self.snippets(path, linesWith: "")
        }
        for path in try Self.files(in: "Sources", endingWith: ".swift") {
            shown += try Self.snippets(path, linesWith: "///")
        }
        #expect(shown.count >= 100)
        let compiled = Self.normalised(
            try Self.files(in: "Tests/SurfaceTests", endingWith: ".swift").map { try Self.text($0) }
                .joined(separator: "\n"))
        for snippet in shown {
            let code = Self.normalised(snippet.code)
            #expect(!code.isEmpty, "\(snippet.place): an empty snippet")
            // Give the value a name, because a failure would otherwise print every line of this target.
            let isCompiled = compiled.contains(code)
            #expect(isCompiled, "\(snippet.place): no test compiles this snippet:\n\(snippet.code)")
        }
    }
}
