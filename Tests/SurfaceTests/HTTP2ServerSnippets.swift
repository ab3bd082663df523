// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

// The snippets of the doc comments in Sources/CurlewTesting/HTTP2; parameters provide the values that a snippet
// assumes.

// HTTP2/HTTP2ErrorCode.swift
func snippetOfHTTP2ErrorCode(_ server: HTTP2Server, _ request: RecordedRequest) async {
    let code = await server.waitForReset(of: request)
    if code == .cancel { print("the client gave up") }
}

// HTTP2/HTTP2Frame.swift
func snippetOfHTTP2Frame() -> [HTTP2Frame] {
    var cut = HTTP2Frame.data(1, [1, 2, 3])
    cut.declaredLength = 4  // the next frame loses a byte to this one
    let frames = [
        HTTP2Frame.rstStream(1, .refusedStream),
        HTTP2Frame.data(0, Array("on no stream".utf8)),
        HTTP2Frame(.init(rawValue: 0xFA), stream: 3, payload: [1, 2, 3]),  // of an unknown type
        cut,
    ]
    return frames
}

// HTTP2/HTTP2Script.swift
func snippetOfHTTP2Script(_ request: RecordedRequest, _ half: [UInt8], _ gate: Gate) -> [HTTP2Script] {
    let scripts: [HTTP2Script] = [
        .respond(200, [("content-type", "text/plain")], text: "hello"),  // after the whole request
        .now.head(413).end().reset(.noError),  // before the body of the request has arrived
        .afterRequest.head(200).body(half).fault(.stall(gate)).reset(.internalError),
        .now.goAway(upTo: 0, .noError),  // the server has processed no stream
        .now.reset(.refusedStream),
        .now.withholdingWindow().fault(.stall(gate)).windowUpdate(by: 1 << 20).reading().respond(200),
        .now.head(200).flood(.data(request.stream)),  // endless empty DATA
    ]
    return scripts
}

// HTTP2/HTTP2Server.swift
func snippetOfHTTP2Server() async throws -> RecordedRequest? {
    let server = try HTTP2Server { request in
        request.path == "/refused" ? .now.reset(.refusedStream) : .respond(200, text: "hello")
    }
    // … requests to server.url("/") …
    let request = await server.nextRequest()
    return request
}

func snippetOfHTTP2Waiting(_ server: HTTP2Server, _ request: RecordedRequest) async -> RecordedRequest? {
    let half = await server.wait(for: request) { $0.bodyLength >= 1000 }
    return half
}

// HTTP2/HTTP2Setting.swift
func snippetOfHTTP2Setting() -> HTTP2Script {
    let script = HTTP2Script.now.settings([.maxConcurrentStreams(1), .initialWindowSize(0)])
    return script
}
