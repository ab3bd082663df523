// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Multipart forms and their expected contents as parsed by servers of other projects.
private enum FormScene {
    /// Names with characters that are special in fields, quoted strings or forms, sent unchanged.
    static let names = [
        "plain", "with space", "é漢👴🏻", "e\u{301}", "a;b", "a=b", "a'b", "a,b", "a/b", "[]", "k[0]", "%41", "%", "<>",
        "a:b",
        "\u{2028}", "{}|^`~!*()$@",
    ]

    /// Names that must be escaped, and their escaped form.
    static let escaped = ["a\"b": "a%22b", "a\rb": "a%0D%0Ab", "a\n\nb": "a%0D%0A%0D%0Ab", "\r\n--x": "%0D%0A--x"]

    static func hash(_ bytes: some Collection<UInt8>) -> String { SHA256Stream.hex(of: bytes) }

    /// Text parts with awkward names and contents.
    static func texts() -> (parts: [MultipartForm.Part], expected: [(String, String)]) {
        var (parts, expected): ([MultipartForm.Part], [(String, String)]) = ([], [])
        for name in names {
            parts.append(MultipartForm.Part(name, "\(name)\r\n--\(name)\r\n"))
            expected.append((name, "\(name)\r\n--\(name)\r\n"))
        }
        for (name, written) in escaped.sorted(by: { $0.key < $1.key }) {
            parts.append(MultipartForm.Part(name, ""))
            expected.append((written, ""))
        }
        return (parts, expected)
    }

    static func check(_ form: FormReading, is expected: [(String, String)]) {
        #expect((form.defects ?? []).isEmpty)
        #expect(form.parts.count == expected.count)
        for (part, (name, text)) in zip(form.parts, expected) {
            let isSame = part.name.map { Array($0.utf8) } == Array(name.utf8)
            #expect(isSame && part.filename == nil, "\(part.name ?? "nil") instead of \(name.debugDescription)")
            #expect(part.sha256 == hash(text.utf8), "\(name.debugDescription)")
        }
    }

    /// Parts from files, streams and bytes; the streams have a declared length if `lengthsKnown` is true.
    static func files(_ lengthsKnown: Bool) throws -> (
        parts: [MultipartForm.Part], files: [ScratchFile], hashes: [String]
    ) {
        var (parts, files, hashes): ([MultipartForm.Part], [ScratchFile], [String]) = ([], [], [])
        for index in 0..<30 {
            let pattern = PatternBody(seed: UInt64(index), length: index * index * 331)
            let name = "n\(index)"
            switch index % 3 {
            case 0:
                files.append(try ScratchFile(pattern.bytes))
                parts.append(MultipartForm.Part(name, file: files[files.count - 1].path, filename: "é \(index)'s.png"))
            case 1: parts.append(MultipartForm.Part(name, bytes: pattern.bytes, filename: "é \(index)'s.png"))
            default:
                let length = lengthsKnown ? Int64(pattern.length) : nil
                let source = ChunkSource(body: pattern, chunk: 4001)
                parts.append(MultipartForm.Part(name, stream: source, length: length, filename: "é \(index)'s.png"))
            }
            hashes.append(pattern.sha256)
        }
        return (parts, files, hashes)
    }

    static func check(_ form: FormReading, _ hashes: [String], _ lengthsKnown: Bool) {
        #expect((form.defects ?? []).isEmpty && form.parts.map(\.sha256) == hashes)
        #expect(form.parts.map(\.name) == hashes.indices.map { "n\($0)" })
        #expect(form.parts.map(\.filename) == hashes.indices.map { "é \($0)'s.png" })
        #expect(Set(form.parts.map(\.type)) == ["image/png"] && (form.length != nil) == lengthsKnown)
    }

    static func post(_ parts: [MultipartForm.Part], _ url: String) async throws -> FormReading {
        let form = MultipartForm(parts)
        let request = Request(.post, url, fields: form.fields, body: .multipart(form))
        let (data, head) = try await Session().data(for: request)
        #expect(head.status == .ok, "\(String(decoding: data, as: UTF8.self))")
        return try JSONDecoder().decode(FormReading.self, from: data)
    }
}

@Suite(.enabledIfInstalled(.python3), .peer(.python3), .timeLimit(.minutes(5)))
struct PythonMultipartTests {
    @Test func multipartNamesWithSpecialCharactersAreRead() async throws {
        let (parts, expected) = FormScene.texts()
        // Python's mail parser treats a backslash as the start of a quoted pair, so no name contains one.
        FormScene.check(try await FormScene.post(parts, try PythonServer.shared().url("/")), is: expected)
    }

    @Test(arguments: [true, false]) func multipartWithManyFilesIsRead(_ lengthsKnown: Bool) async throws {
        let (parts, files, hashes) = try FormScene.files(lengthsKnown)
        let form = try await FormScene.post(parts, try PythonServer.shared().url("/"))
        withExtendedLifetime(files) { FormScene.check(form, hashes, lengthsKnown) }
    }
}

@Suite(.enabledIfInstalled(.werkzeug), .peer(.werkzeug), .timeLimit(.minutes(5)))
struct WerkzeugMultipartTests {
    @Test func multipartNamesWithSpecialCharactersAreRead() async throws {
        let (parts, expected) = FormScene.texts()
        FormScene.check(try await FormScene.post(parts, try WerkzeugServer.shared().url("/parts")), is: expected)
    }

    @Test(arguments: [true, false]) func multipartWithManyFilesIsRead(_ lengthsKnown: Bool) async throws {
        let (parts, files, hashes) = try FormScene.files(lengthsKnown)
        let form = try await FormScene.post(parts, try WerkzeugServer.shared().url("/parts"))
        withExtendedLifetime(files) { FormScene.check(form, hashes, lengthsKnown) }
    }

    private struct Search: Encodable {
        var text = "tea & cake"
        var tags = ["b", "a"]
        var near = ["lat": 48.5]
    }

    @Test func multipartWithEncodedFieldsAndAFileIsRead() async throws {
        let parts =
            try MultipartForm.Part.fields(of: Search()) + [MultipartForm.Part("f", bytes: [1, 2], filename: "f.bin")]
        let form = try await FormScene.post(parts, try WerkzeugServer.shared().url("/parts"))
        #expect(form.parts.map(\.name) == ["near[lat]", "tags[]", "tags[]", "text", "f"])
        #expect(form.parts.map(\.text) == ["48.5", "b", "a", "tea & cake", "\u{1}\u{2}"])
        #expect(form.parts.map(\.filename) == [nil, nil, nil, nil, "f.bin"])
    }
}
