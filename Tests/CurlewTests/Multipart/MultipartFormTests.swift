// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The bytes of encoded forms, without sending them.
struct MultipartFormTests {
    private func text(_ form: MultipartForm) throws -> String {
        guard let joined = form.layout.body.source as? JoinedBody else { return "no joined body" }
        return String(decoding: try #require(joined.joinedBytes), as: UTF8.self)
    }

    private func boundary(_ text: String = "B") throws -> MultipartForm.Boundary {
        try #require(MultipartForm.Boundary(text))
    }

    private func disposition(_ part: MultipartForm.Part) -> String? { part.fields[.contentDisposition] }

    @Test func formIsEncoded() throws {
        let form = MultipartForm(boundary: try boundary()) {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("raw", bytes: [UInt8]("x\r\n".utf8), filename: "a.png")
            MultipartForm.Part(fields: ["X-A": "1"], body: .none)
        }
        let expected = """
            --B
            Content-Disposition: form-data; name="title"

            Alps
            --B
            Content-Disposition: form-data; name="raw"; filename="a.png"
            Content-Type: image/png

            x

            --B
            X-A: 1


            --B--

            """
        #expect(try text(form) == expected.replacing("\n", with: "\r\n"))
        #expect(RequestBody.multipart(form).length == Int64(try text(form).utf8.count))
        #expect(form.contentType.description == "multipart/form-data; boundary=B")
        #expect(form.fields == ["Content-Type": "multipart/form-data; boundary=B"])
        #expect("\(form)" == "a form of 3 parts" && "\(form.parts[0])" == "the part “title”, 4 bytes")
    }

    @Test(arguments: [
        ("plain", "plain"), ("a\"b", "a%22b"), ("a\rb", "a%0D%0Ab"), ("a\nb", "a%0D%0Ab"), ("a\r\nb", "a%0D%0Ab"),
        ("\n\r", "%0D%0A%0D%0A"), ("\r\r\n\n", "%0D%0A%0D%0A%0D%0A"), ("é漢👴🏻", "é漢👴🏻"), ("a\\b%22;", "a\\b%22;"),
        ("", ""),
    ])
    func partNamesAreEscaped(_ name: String, _ written: String) {
        #expect(disposition(MultipartForm.Part(name, "")) == "form-data; name=\"\(written)\"")
    }

    /// Line breaks in file names are not normalised to CRLF (WHATWG HTML).
    @Test(arguments: [("a\rb", "a%0Db"), ("a\nb", "a%0Ab"), ("a\r\n\"b", "a%0D%0A%22b"), ("ä.png", "ä.png")])
    func fileNamesAreEscaped(_ name: String, _ written: String) {
        #expect(
            disposition(MultipartForm.Part("n", bytes: [1], filename: name))
                == "form-data; name=\"n\"; filename=\"\(written)\"")
        #expect(
            disposition(MultipartForm.Part("n", file: "/x", filename: name))?.hasSuffix("filename=\"\(written)\"")
                == true)
    }

    @Test func contentTypesOfPartsAreChosen() {
        func type(_ part: MultipartForm.Part) -> String? { part.fields[.contentType] }
        #expect(type(MultipartForm.Part("a", "text")) == nil)
        #expect(type(MultipartForm.Part("a", file: "/srv/x.tar.gz")) == "application/gzip")
        #expect(disposition(MultipartForm.Part("a", file: "/srv/x.JPG")) == "form-data; name=\"a\"; filename=\"x.JPG\"")
        #expect(type(MultipartForm.Part("a", file: "/srv/x.JPG")) == "image/jpeg")
        #expect(type(MultipartForm.Part("a", file: "/srv/x.jpg", filename: "other.png")) == "image/png")
        #expect(type(MultipartForm.Part("a", file: "/srv/x.jpg", filename: "other")) == "image/jpeg")
        #expect(type(MultipartForm.Part("a", file: "/srv/x.jpg", type: "text/css")) == "text/css")
        #expect(type(MultipartForm.Part("a", bytes: [])) == "application/octet-stream")
        #expect(
            type(MultipartForm.Part("a", body: .text("x"), filename: "a.json", type: .formData))
                == "multipart/form-data")
    }

    @Test func resultBuilderSupportsControlFlow() throws {
        let (isLong, few): (Bool, [MultipartForm.Part]) = (
            true, [MultipartForm.Part("c", ""), MultipartForm.Part("d", "")]
        )
        let form = MultipartForm {
            MultipartForm.Part("a", "")
            if isLong { MultipartForm.Part("b", "") }
            if !isLong { MultipartForm.Part("never", "") } else { few }
            for index in 0..<2 { MultipartForm.Part("e\(index)", "") }
            switch isLong {
            case true: MultipartForm.Part("f", "")
            case false: MultipartForm.Part("never", "")
            }
        }
        #expect(form.parts.map(\.name) == ["a", "b", "c", "d", "e0", "e1", "f"])
    }

    // MARK: Boundaries

    @Test func boundariesAreRandom() {
        let all = Set((0..<200).map { _ in MultipartForm.Boundary().text })
        #expect(all.count == 200)
        for text in all {
            #expect(text.hasPrefix("curlew-") && text.utf8.count == 39 && text.isToken)
            #expect(MultipartForm.Boundary(text)?.text == text)
        }
        let digits = all.map { Array($0.utf8.dropFirst(7)) }
        for place in 0..<32 { #expect(Set(digits.map { $0[place] }).count > 8, "each digit is random") }
    }

    @Test func invalidBoundariesAreRejected() {
        let long = String(repeating: "b", count: 70)
        for text in ["a", "a b", "'()+_,-./:=?", long] { #expect(MultipartForm.Boundary(text)?.text == text) }
        for text in ["", " ", "a ", long + "b", "a\r\nb", "a\"", "ä", "a;b", "a\\"] {
            #expect(MultipartForm.Boundary(text) == nil, "\(text.debugDescription)")
        }
        let odd = MultipartForm(
            [MultipartForm.Part("a", "")], boundary: MultipartForm.Boundary("a b:c") ?? MultipartForm.Boundary())
        #expect(odd.contentType.description == "multipart/form-data; boundary=\"a b:c\"")
        #expect(odd.contentType[parameter: "boundary"] == "a b:c")
    }

    // MARK: Parameters

    private struct Search: Encodable {
        var text = "tea & cake\n"
        var tags = ["b", "a"]
        var near = ["lat": 48.5]
        var isNew = true
        var key = Data([0xFF, 0x00])
    }

    @Test func parametersAreFlattenedLikeQueries() throws {
        func pairs(_ parts: [MultipartForm.Part]) -> [String] {
            parts.map { part in
                guard let bytes = part.body.bytes else { return "?" }
                let shown = String(validating: bytes, as: UTF8.self) ?? "\(bytes)"
                return "\(part.name ?? "")=\(shown)" + (part.fields[.contentType].map { " \($0)" } ?? "")
            }
        }
        #expect(
            pairs(try MultipartForm.Part.fields(of: Search())) == [
                "isNew=1", "key=[255, 0] application/octet-stream", "near[lat]=48.5", "tags[]=b", "tags[]=a",
                "text=tea & cake\n",
            ])
        let other = Request.QueryEncoder(arrays: .commaJoined, nesting: .dots, bools: .literal, order: .asGiven)
        #expect(
            pairs(try MultipartForm.Part.fields(of: Search(), by: other)) == [
                "text=tea & cake\n", "tags=b,a", "near.lat=48.5", "isNew=true", "key=[255, 0] application/octet-stream",
            ])
        let query: Request.Query = ["a": 1, "a": "é&", "none": nil, "set": Set(["y", "x"])]
        #expect(pairs(try MultipartForm.Part.fields(of: query)) == ["a=1", "a=é&", "none=", "set=x", "set=y"])
        #expect(throws: EncodingError.self) { try MultipartForm.Part.fields(of: [1, 2]) }
        #expect(throws: EncodingError.self) { try MultipartForm.Part.fields(of: Request.Query.percentEncoded("a=b")) }
    }

    // MARK: Invalid forms

    @Test(arguments: [
        ([MultipartForm.Part](), "has no parts"),
        (
            [MultipartForm.Part("a\u{0}", "")],
            "The field “Content-Disposition” of the part “a\\0” contains a control character"
        ),
        (
            [MultipartForm.Part("a", ""), MultipartForm.Part(fields: ["A B": ""], body: .none)],
            "The field name “A B” of part 2 is not a token"
        ),
        (
            [MultipartForm.Part(fields: ["A": "x\r\nB: y"], body: .none)],
            "The field “A” of part 1 contains a control character"
        ),
        ([MultipartForm.Part("s", body: .descriptor(0, length: -1))], "The length of the part “s” is negative"),
        ([MultipartForm.Part("s", body: .multipart(MultipartForm([])))], "has no parts"),
    ])
    func invalidFormsAreRejected(_ parts: [MultipartForm.Part], _ message: String) {
        let request = Request(.post, "http://x.test/", body: .multipart(MultipartForm(parts)))
        let error = #expect(throws: NetworkError.self) { try request.validated() }
        let said = error?.message ?? ""
        #expect(error?.kind == .invalidRequest && error?.phase == .preparing && said.contains(message), "\(said)")
        #expect(error?.hint != nil)
    }

    @Test func formIsReplayableIfAllPartsAre() {
        let once = AsyncStream<[UInt8]> { $0.finish() }
        let form = MultipartForm {
            MultipartForm.Part("a", file: "/x")
            MultipartForm.Part("b", stream: once, length: 3, canReplay: true)
        }
        let body = RequestBody.multipart(form)
        #expect(
            body.canReplay && !body.isConsumed && !body.isNone && body.length == nil && body.nonReplayablePart == nil)
        let other = RequestBody.multipart(
            MultipartForm(form.parts + [MultipartForm.Part("log", stream: once, length: 4)]))
        #expect(!other.canReplay && !other.isConsumed && other.nonReplayablePart == "the part “log”")
    }

    @Test func nestedFormsAreJoined() throws {
        let inner = MultipartForm(
            [MultipartForm.Part("x", "1"), MultipartForm.Part("f", body: .file("/f"))], boundary: try boundary("I"))
        let outer = MultipartForm([MultipartForm.Part("in", body: .multipart(inner), type: inner.contentType)])
        let joined = try #require(RequestBody.multipart(outer).source as? JoinedBody)
        #expect(joined.pieces.count == 7)
        #expect(joined.pieces.map(\.label).dropFirst().dropLast().allSatisfy { $0 == "the part “in”" })
        #expect(outer.progress(at: TransferProgress()).count == 1)
    }

    @Test func curlDescriptionsOfFormsReproduceTheBody() throws {
        let known = MultipartForm([MultipartForm.Part("a", "1")], boundary: try boundary())
        let request = Request(.post, "http://x.test/", fields: known.fields, body: .multipart(known))
        #expect(request.curlDescription.contains("--data-binary '<redacted: "))
        #expect(request.curlDescription(showingSecrets: true).hasPrefix("printf '\\055-B\\015\\nContent-Disposition"))
        let files = MultipartForm([MultipartForm.Part("a", file: "/srv/a b")], boundary: try boundary())
        let text = Request(.post, "http://x.test/", fields: files.fields, body: .multipart(files))
            .curlDescription(showingSecrets: true)
        #expect(text.contains("cat -- '/srv/a b'; printf '\\015\\n--B--\\015\\n'; } | curl"))
        #expect(text.contains("--data-binary @-"))
    }
}
