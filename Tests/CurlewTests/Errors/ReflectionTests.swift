// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@Suite
struct ReflectionTests {
    private func dumped(_ value: Any) -> String {
        var text = ""
        dump(value, to: &text)
        return text
    }

    @Test func dumpsHideSecretsAndBodies() throws {
        let fields: HeaderFields = ["Authorization": "Bearer hush", "Accept": "text/plain"]
        let request = Request(
            .post, "https://user:hush@example.com/?token=hush", fields: fields, body: .text("hush hush"))
        let head = ResponseHead(status: 200, version: .http1_1, fields: ["Set-Cookie": "id=hush", "Server": "s"])
        let error = NetworkError(
            .connectionLost, phase: .receiving, "It ended.", request: request, response: head, body: Array("hush".utf8))
        for value in [fields, request, request.body, head, error, ByteChunk("hush".utf8)] as [Any] {
            let text = dumped(value)
            #expect(!text.contains("hush"), "\(type(of: value))")
            #expect(!text.contains("104"), "\(type(of: value)): the byte of h")
        }
        let session = Session()
        let transfer = session.transfer(request)
        for value in [transfer, transfer.bytes, session] as [Any] {
            #expect(!dumped(value).contains("hush"), "\(type(of: value))")
        }
        #expect(dumped(fields).contains("Accept: text/plain"))
        #expect(dumped(request).contains("POST https://example.com/"))
        #expect(dumped(request.body).contains("a body of 9 bytes"))
        #expect(dumped(RequestBody.none).contains("no body"))
        #expect(dumped(RequestBody.file("/tmp/x")).contains("a body of unknown length"))
        #expect(dumped(head).contains("Server: s"))
        #expect(dumped(error).contains("connection lost while receiving"))
        let response = dumped(Response(head: head, value: 7, trailers: ["Authorization": "hush"]))
        #expect(response.contains("value: 7") && response.contains("metrics") && !response.contains("hush"))
        #expect(dumped(ByteChunk([1, 2, 3])).contains("count: 3"))
        #expect(fields.contains { dumped($0).contains("Authorization: <redacted>") })
    }
}
