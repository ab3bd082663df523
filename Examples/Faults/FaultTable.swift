// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// A fault of a server and the expected kind of error; nil if the request must succeed.
struct Fault: Sendable {
    let name: String
    let expected: NetworkError.Kind?
    /// The number of requests; the result of the last one counts.
    let times: Int
    /// Sets up the fault and returns the request to send.
    let prepare: @Sendable (Stage) throws -> Request

    init(
        _ name: String, _ expected: NetworkError.Kind?, times: Int = 1,
        _ prepare: @escaping @Sendable (Stage) throws -> Request
    ) {
        self.name = name
        self.expected = expected
        self.times = times
        self.prepare = prepare
    }

    /// Creates a fault in the response to a GET request.
    init(_ name: String, _ expected: NetworkError.Kind?, _ response: MockResponse) {
        self.init(name, expected) { stage in Request(.get, stage.url(response)) }
    }

    static let all = connections + heads + bodies + requests + handshakes
}

private let letter = MockResponse.bytes([UInt8](repeating: 46, count: 1000))

extension Fault {
    private static let connections = [
        Fault("does not exist", .cannotResolve) { _ in "http://nowhere.invalid/" },
        Fault("does not listen", .cannotConnect) { stage in Request(.get, try stage.deadURL()) },
        Fault("says nothing", .timedOut, .silence),
        Fault("hangs up before the status line", .connectionLost, letter.fault(.close, at: .start)),
        Fault("resets before the status line", .connectionLost, letter.fault(.reset, at: .start)),
        Fault("has closed an idle connection", nil, times: 2) { stage in
            Request(.get, stage.url(.text("hello").fault(.close, at: .end)))
        },
    ]

    private static let heads = [
        Fault("hangs up inside the status line", .connectionLost, letter.fault(.close, at: .head(10))),
        Fault("hangs up inside a header field", .connectionLost, letter.fault(.close, at: .head(30))),
        Fault("resets inside a header field", .connectionLost, letter.fault(.reset, at: .head(30))),
        Fault("stalls inside the head", .timedOut, letter.fault(.stall(Gate()), at: .head(30))),
        Fault("speaks SSH", .invalidResponse, .raw("SSH-2.0-OpenSSH_9.2\r\n").closing()),
        Fault("speaks HTTP/0.9", .invalidResponse, .raw("<p>hello</p>").closing()),
        Fault("sends a status of two digits", .invalidResponse, .raw("HTTP/1.1 20 OK\r\n\r\n").closing()),
        Fault(
            "sends a head of 100 kB", .invalidResponse, letter.field("X-Large", String(repeating: "x", count: 100_000))),
        Fault("sends 10 000 header fields", .invalidResponse, flood(10_000)),
    ]

    private static let bodies = [
        Fault("hangs up between head and body", .connectionLost, letter.fault(.close, at: .body(0))),
        Fault("hangs up inside the body", .connectionLost, letter.fault(.close, at: .body(400))),
        Fault("resets inside the body", .connectionLost, letter.fault(.reset, at: .body(400))),
        Fault("stalls inside the body", .timedOut, letter.fault(.stall(Gate()), at: .body(400))),
        Fault("drips forever", .timedOut, letter.dripping(bytes: 1, every: .milliseconds(100))),
        Fault("sends a chunk size that is not a number", .invalidResponse, chunked("zz\r\nhello\r\n0\r\n\r\n")),
        Fault(
            "counts the body twice, differently", .invalidResponse,
            letter.field("Content-Length", "1000").field("Content-Length", "5")),
        Fault("counts a body that comes in chunks", .invalidResponse, letter.chunked().field("Content-Length", "5")),
        Fault("omits the last chunk", .connectionLost, letter.chunked(size: 500).fault(.close, at: .body(1000))),
        Fault("announces a body above the limit", .bodyTooLarge, .pattern(PatternBody(seed: 1, length: 1 << 30))),
        Fault(
            "sends a body above the limit", .bodyTooLarge,
            .pattern(PatternBody(seed: 1, length: 1 << 30)).chunked()),
        Fault(
            "sends a body with 204", nil, .raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello").closing()),
    ]

    private static let requests = [
        Fault("responds with 413 and stops reading", nil) { stage in
            let body = RequestBody.bytes([UInt8](repeating: 7, count: 8 << 20))
            return Request(.put, stage.url(.status(413), reading: .none), body: body)
        },
        Fault("reads nothing of the body", .timedOut) { stage in
            let body = RequestBody.bytes([UInt8](repeating: 7, count: 32 << 20))
            return Request(.put, stage.url(.status(200), reading: .whole.stalling(at: Gate())), body: body)
        },
        Fault("is sent a line break in a field", .invalidRequest) { stage in
            Request(stage.url(.status(200)), fields: ["X-Name": "a\r\nX-Injected: b"])
        },
        Fault("is sent another length than declared", .bodyFailed) { stage in
            let source = AsyncStream<[UInt8]> { continuation in
                continuation.yield([1, 2, 3])
                continuation.finish()
            }
            return Request(.put, stage.url(.status(200)), body: .stream(source, length: 10))
        },
    ]

    private static let handshakes = [
        Fault("has a self-signed certificate", .untrusted) { stage in
            Request(.get, try stage.secureURL(.selfSigned()))
        },
        Fault("has a certificate for another host", .untrusted) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(hosts: ["elsewhere.example"])))
        },
        Fault("has an expired certificate", .untrusted) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(validity: .expired)))
        },
        Fault("supports no TLS version above 1.1", .tlsFailed) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(), newest: .v1_1))
        },
        Fault("does not speak TLS", .tlsFailed) { stage in
            let greeting = Array("220 mail.example ESMTP\r\n".utf8)
            return Request(.get, try stage.secureURL(stage.authority.issue(), accepting: [.send(greeting), .close]))
        },
        Fault("never ends the handshake", .timedOut) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(), accepting: [.stall(Gate())]))
        },
        Fault("cuts the body without close_notify", .connectionLost) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(), letter.fault(.cut, at: .body(400))))
        },
        Fault("cuts a body of unknown length", .connectionLost) { stage in
            Request(.get, try stage.secureURL(stage.authority.issue(), letter.untilClose().fault(.cut, at: .body(400))))
        },
    ]

    private static func flood(_ count: Int) -> MockResponse {
        (0..<count).reduce(.text("hello")) { response, number in response.field("X-\(number)", "flood") }
    }

    private static func chunked(_ body: String) -> MockResponse {
        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body).closing()
    }
}
