// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// The parser of multipart bodies, with any split into chunks.
@Suite(.timeLimit(.minutes(5)))
struct MultipartParserTests {
    /// A parsed body: the fields and bytes of each part, and the error.
    private struct Reading: Equatable, CustomStringConvertible {
        var parts: [(fields: HeaderFields, bytes: [UInt8])] = []
        var isOpen = false
        var failure: String?

        static func == (one: Reading, other: Reading) -> Bool {
            one.parts.elementsEqual(other.parts, by: ==) && one.failure == other.failure && one.isOpen == other.isOpen
        }

        var description: String {
            "\(parts.map { "\($0.fields)|" + String(decoding: $0.bytes, as: UTF8.self) }) \(failure ?? "")"
        }

        mutating func take(_ element: MultipartElements.Element) {
            switch element {
            case .part(let fields):
                if isOpen { failure = "a part began inside a part" }
                parts.append((fields, []))
                isOpen = true
            case .bytes(let chunk):
                if !isOpen || chunk.isEmpty { failure = "bytes outside of a part" }
                parts[parts.count - 1].bytes += chunk
            case .end: isOpen = false
            }
        }
    }

    private func read(
        _ chunks: [[UInt8]], boundary: String = "B", limits: MultipartElements.Limits = MultipartElements.Limits()
    ) -> Reading {
        var reading = Reading()
        var parser = MultipartParser(boundary: boundary, limits: limits)
        do throws(NetworkError) {
            for chunk in chunks { try parser.read(ByteChunk(chunk)) { reading.take($0) } }
            try parser.finish { reading.take($0) }
        } catch {
            #expect(error.kind == .decodingFailed && error.phase == .decoding && error.hint != nil)
            reading.failure = error.message
        }
        return reading
    }

    private func read(_ text: String, limits: MultipartElements.Limits = MultipartElements.Limits()) -> Reading {
        let bytes = Array(text.utf8)
        let whole = read([bytes], limits: limits)
        // Single bytes and splits in two at each offset have the same result.
        let single = read(bytes.map { [$0] }, limits: limits)
        #expect(single == whole, "\(text.debugDescription): \(single) instead of \(whole)")
        for cut in 0..<bytes.count {
            let halves = read([Array(bytes[..<cut]), Array(bytes[cut...])], limits: limits)
            #expect(halves == whole, "\(text.debugDescription) cut at \(cut)")
        }
        return whole
    }

    private func contents(_ text: String) -> [String]? {
        let reading = read(text)
        return reading.failure == nil ? reading.parts.map { String(decoding: $0.bytes, as: UTF8.self) } : nil
    }

    @Test(arguments: [
        ("--B\r\n\r\nx\r\n--B--\r\n", ["x"]),
        ("--B\r\n\r\nx\r\n--B--", ["x"]),
        ("--B\r\n\r\nx\r\n--B--  \t", ["x"]),
        ("preamble\r\n--B\r\n\r\nx\r\n--B--\r\nepilogue\r\n--B\r\n\r\ny", ["x"]),
        ("--B\r\nA: 1\r\n\r\n\r\n--B--", [""]),
        ("--B\r\nA: 1\r\n\r\n--B--", [""]),
        ("--B \t\r\n\r\nx\r\n--B\t\r\n\r\ny\r\n--B-- \r\n", ["x", "y"]),
        ("--B\n\nx\ny\n--B\n\n\n\n--B--\n", ["x\ny", "\n"]),
        ("--B\r\n\r\n\r\n\r\n\r\n--B--", ["\r\n\r\n"]),
        (
            "--B\r\n\r\n--\r\n--b\r\n--BB\r\n -- B\r\n--B-\r\nx--B--\r\r\n--B--",
            ["--\r\n--b\r\n--BB\r\n -- B\r\n--B-\r\nx--B--\r"]
        ),
        ("--B\r\n\r\n\r\r\n\n\r\n--B--", ["\r\r\n\n"]),
        ("--B\r\n\r\nx\r\n--B--x\r\n--B--", ["x\r\n--B--x"]),
        ("--B--", []),
        ("\r\n--B--\r\n", []),
        ("--B\r\nContent-Type: multipart/mixed\r\n\r\n--C\r\n\r\nin\r\n--C--\r\n--B--", ["--C\r\n\r\nin\r\n--C--"]),
    ])
    func validBodiesAreParsed(_ text: String, _ parts: [String]) { #expect(contents(text) == parts, "\(read(text))") }

    @Test func partFieldsAreParsed() {
        let text = "--B\r\nContent-Type: text/plain\r\nX-Folded: a\r\n b\r\nno field\r\nX: 1\r\nX: 2\r\n\r\n\r\n--B--"
        #expect(read(text).parts[0].fields == ["Content-Type": "text/plain", "X-Folded": "a b", "X": "1", "X": "2"])
    }

    @Test(arguments: [
        ("", "has no part"), ("no boundary at all\r\n", "has no part"), ("--C\r\n\r\nx\r\n--C--", "has no part"),
        ("--B\r\n\r\nx", "ends inside part 1"), ("--B\r\nA: 1", "ends inside part 1"),
        ("--B\r\n\r\nx\r\n--B", "ends inside part 1"), ("--B\r\n\r\nx\r\n--B-", "ends inside part 1"),
        ("--B\r\n\r\nx\r\n--B\r\n\r\n", "ends inside part 2"), ("--B\r\nA: 1\r\n--B--\r\n", "ends inside its fields"),
    ])
    func malformedBodiesFail(_ text: String, _ message: String) {
        let failure = read(text).failure ?? "none"
        #expect(failure.contains(message), "\(failure)")
    }

    @Test func partsAndFieldsAreLimited() {
        let two = "--B\r\nA: 1234567890\r\n\r\nx\r\n--B\r\n\r\ny\r\n--B--"
        #expect(read(two, limits: MultipartElements.Limits(parts: 2)).failure == nil)
        #expect(read(two, limits: MultipartElements.Limits(parts: 1)).failure?.contains("more than 1 parts") == true)
        #expect(read(two, limits: MultipartElements.Limits(fields: .bytes(17))).failure == nil)
        let failure = read(two, limits: MultipartElements.Limits(fields: .bytes(16))).failure
        #expect(failure?.contains("the fields of part 1 have more than 16 bytes") == true, "\(failure ?? "none")")
    }

    /// Without the limit, a wrong boundary would be searched for until the response ends, and cameras never end theirs.
    @Test func preambleIsLimited() {
        let lines = String(repeating: "--other\r\n", count: 7281)
        #expect(read([Array("\(lines)--B\r\n\r\nx\r\n--B--".utf8)]).failure == nil)
        for size in [100, 70_000] {
            let bytes = Array("\(lines)--other\r\n--other\r\n--B\r\n\r\nx\r\n--B--".utf8)
            let chunks = stride(from: 0, to: bytes.count, by: size).map {
                Array(bytes[$0..<min($0 + size, bytes.count)])
            }
            #expect(read(chunks).failure?.contains("no part begins in its first 64 KiB") == true)
        }
    }

    @Test func elementsBeforeAnErrorAreReturned() throws {
        let head = ResponseHead(status: .ok, fields: ["Content-Type": "multipart/mixed; boundary=B"])
        let serializer = MultipartElements(MultipartElements.Limits(parts: 1))
        var (state, elements) = (try serializer.begin(head), [MultipartElements.Element]())
        let chunk = ByteChunk(Array("--B\r\n\r\nx\r\n--B\r\n\r\ny".utf8))
        #expect(throws: NetworkError.self) { try serializer.decode(chunk, &state, into: &elements) }
        #expect(elements == [.part([:]), .bytes(ByteChunk([0x78])), .end])
    }

    /// The parser buffers blanks after a delimiter until the line ends, so their number is limited.
    @Test func paddingAfterADelimiterIsLimited() {
        let blanks = String(repeating: " ", count: 256)
        #expect(contents("--B\r\n\r\nx\r\n--B--\(blanks)\r\n") == ["x"])
        let more = "x\r\n--B--\(blanks) "
        #expect(contents("--B\r\n\r\n\(more)\r\n--B--") == [more])
    }

    /// Random parts survive writing and parsing for any split of the body.
    @Test func randomPartsRoundTripForEverySplit() {
        for seed in 0..<300 as Range<UInt64> {
            var chance = SeededChance(seed)
            let boundary = ["B", "curlew-0123456789abcdef", "--", "a b", "-"][Int.random(in: 0..<5, using: &chance)]
            // Pieces that resemble delimiters.
            let pieces = [
                "\r", "\n", "\r\n", "-", "--", boundary, "\r\n--", "\r\n--" + boundary.dropLast(), " ", "x", "é",
            ]
            let contents = (0..<Int.random(in: 1...4, using: &chance)).map { _ in
                let text = (0..<Int.random(in: 0...30, using: &chance)).map { _ in
                    pieces[Int.random(in: 0..<pieces.count, using: &chance)]
                }.joined()
                // Delimiters are removed from the bytes, because CRLF is one `Character`; a removal can form a new one.
                let wanted = Array("\n--\(boundary)".utf8)
                var bytes = Array(("\n" + text).utf8)
                while bytes.contains(wanted) { bytes.replace(wanted, with: [0x0A]) }
                return Array(bytes.dropFirst())
            }
            let form = MultipartForm(
                contents.map { MultipartForm.Part("n", bytes: $0) },
                boundary: MultipartForm.Boundary(boundary) ?? MultipartForm.Boundary())
            guard let joined = form.layout.body.source as? JoinedBody, let body = joined.joinedBytes else { return }
            var chunks: [[UInt8]] = []
            var position = 0
            while position < body.count {
                let end = min(body.count, position + Int.random(in: 1...40, using: &chance))
                chunks.append(Array(body[position..<end]))
                position = end
            }
            let reading = read(chunks, boundary: boundary)
            #expect(reading.failure == nil && !reading.isOpen, "seed \(seed): \(reading)")
            #expect(reading.parts.map(\.bytes) == contents, "seed \(seed): \(reading)")
        }
    }

    @Test func contentIsReturnedBeforeThePartEnds() throws {
        var parser = MultipartParser(boundary: "B", limits: MultipartElements.Limits())
        var elements: [MultipartElements.Element] = []
        try parser.read(ByteChunk("--B\r\n\r\nabc".utf8)) { elements.append($0) }
        #expect(elements == [.part([:]), .bytes(ByteChunk("abc".utf8))])
        try parser.read(ByteChunk("d\r\n--".utf8)) { elements.append($0) }
        #expect(elements.count == 3 && elements.last == .bytes(ByteChunk("d".utf8)))
        try parser.read(ByteChunk("B\r\n".utf8)) { elements.append($0) }
        #expect(elements.last == .end, "a part ends with its delimiter")
    }

    /// The parsing time of line breaks and incomplete delimiters is linear: a body of forty times the length takes
    /// about forty times as long, and not 1600 times.
    ///
    /// The test measures the CPU time of its thread, so that a busy machine does not matter.
    @Test func parsingTimeIsLinear() {
        func now() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        func time(_ piece: String, times count: Int) -> Duration {
            let body = Array(("--B\r\n\r\n" + String(repeating: piece, count: count) + "\r\n--B--").utf8)
            let start = now()
            #expect(read([body]).failure == nil)
            return now() - start
        }
        for piece in ["\r\n--", "\n--Bx", "\n", "\r"] {
            let short = time(piece, times: 5000)
            #expect(time(piece, times: 200_000) < max(short, .milliseconds(1)) * 400, "\(piece.debugDescription)")
        }
    }

    @Test(arguments: [
        "text/plain", "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=\"a\r\nb\"",
        "multipart/mixed; boundary=\(String(repeating: "b", count: 257))",
    ])
    func invalidResponseBoundariesFail(_ type: String) {
        let head = ResponseHead(status: .ok, fields: [.contentType: type])
        let error = #expect(throws: NetworkError.self) { try MultipartElements().begin(head) }
        #expect(error?.kind == .decodingFailed)
        #expect(error?.message.hasPrefix("The multipart response is malformed: its Content-Type ") == true)
    }

    @Test func partNamesAndFileNamesAreParsed() {
        let fields: HeaderFields = [
            "Content-Disposition": "form-data; name=\"a\\\"b\"; FileName=c.txt", "Content-Type": "text/plain",
        ]
        let part = MultipartElements.Part(fields: fields, body: Data("secret".utf8))
        #expect(part.name == "a\"b" && part.filename == "c.txt" && part.contentType == "text/plain")
        #expect("\(part)" == "a part of 6 bytes")
        var dumped = ""
        dump(part, to: &dumped)
        #expect(!dumped.contains("secret") && dumped.contains("text/plain"))
        let names: [(String, String?)] = [
            ("filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
            ("filename=a; filename*=utf-8'en'b.txt", "b.txt"),
            ("filename=a; filename*=UTF-8''%e2%82", "a"), ("filename=a; filename*=UTF-8''%+f%2", "a"),
            ("filename=a; filename*=x", "a"), ("filename=a; filename*=latin1''b", "a"),
            ("filename=\"a%22%0D%0Ab%41\"", "a\"\r\nb%41"), ("filename=\"\"", ""), ("x=y", nil),
        ]
        for (parameters, filename) in names {
            let part = MultipartElements.Part(
                fields: ["Content-Disposition": "attachment; \(parameters)"], body: Data())
            #expect(part.filename == filename, "\(parameters)")
        }
        let own = MultipartElements.Part(
            fields: MultipartForm.Part("a\"b", bytes: [], filename: "c\"d\n").fields, body: Data())
        #expect(own.name == "a\"b" && own.filename == "c\"d\n")
        let bare = MultipartElements.Part(fields: ["Content-Disposition": "attachment"], body: Data())
        #expect(bare.name == nil && bare.filename == nil && bare.contentType == nil)
    }
}
