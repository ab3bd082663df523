// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Testing

@testable import CurlewEngine

@Suite("CurlFault")
struct CurlFaultTests {
    /// Texts of libcurl 7.88.1 and 8.23.0 and of OpenSSL 3.0, with a code that comes with each.
    private static let texts: [(code: UInt32, text: String, fault: CurlFault)] = [
        (56, "Illegal or missing hexadecimal sequence in chunked-encoding", .malformedChunks),
        (56, "Failed reading the chunked-encoded stream", .malformedChunks),
        (56, "Too large response headers: 307201 > 307200", .headTooLarge),
        (56, "Connection died, tried 5 times before giving up", .retriesExhausted),
        (
            56, "process_pending_input: nghttp2_session_mem_recv() returned -902:The user callback function failed",
            .protocolViolation
        ),
        (92, "HTTP/2 stream 1 was not closed cleanly: REFUSED_STREAM (err 7)", .streamRefused),
        (92, "HTTP/2 stream 1 refused by server, try again on a new connection", .streamRefused),
        (92, "HTTP/2 stream 1 was not closed cleanly: PROTOCOL_ERROR (err 1)", .protocolViolation),
        (92, "HTTP/2 stream 1 reset by server (error 0x1 PROTOCOL_ERROR)", .protocolViolation),
        (
            92, "HTTP/2 stream 1 was closed cleanly, but before getting all response header fields, treated as error",
            .streamClosedInsideHead
        ),
        (35, "error:0A00010B:SSL routines::wrong version number", .plainText),
        (35, "error:0A00009C:SSL routines::http request", .plainText),
    ]

    @Test func everyKnownTextMapsToItsFault() {
        for (code, text, fault) in Self.texts { #expect(CurlFault(code: code, text: text) == fault, "\(text)") }
        for code: UInt32 in [8, 18, 56] {
            #expect(CurlFault(code: code, text: "Failed reading the chunked-encoded stream") == .malformedChunks)
        }
        #expect(CurlFault.texts.map(\.example) == Self.texts.map(\.text))
        #expect(CurlFault.texts.allSatisfy { $0.example.contains($0.marker) && !$0.versions.isEmpty })
    }

    @Test(arguments: [
        (1, CurlFault.unsupportedProtocol), (3, .malformedURL), (5, .cannotResolveProxy), (6, .cannotResolveHost),
        (7, .cannotConnect), (8, .malformedResponse), (16, .connectionFailed), (18, .truncated), (27, .outOfMemory),
        (28, .timedOut), (35, .handshakeFailed), (43, .badArgument), (52, .emptyReply), (55, .sendFailed),
        (56, .receiveFailed), (58, .tlsFailed), (60, .untrusted), (61, .badContentCoding), (65, .cannotRewind),
        (77, .tlsFailed), (92, .streamReset), (98, .tlsFailed), (100, .tooLarge), (2, .other), (99, .other),
    ])
    func codesDecideWithoutAKnownText(code: Int, fault: CurlFault) {
        #expect(CurlFault(code: UInt32(code), text: "some other text") == fault)
    }

    @Test func textsOfOtherCodesDoNotCount() {
        #expect(CurlFault(code: 7, text: "REFUSED_STREAM") == .cannotConnect)
        #expect(CurlFault(code: 92, text: "Connection died") == .streamReset)
    }

    @Test func streamWithoutTextWasClosedCleanly() {
        #expect(CurlFault(code: 92, text: "") == .streamClosed)
        #expect(CurlFault(code: 56, text: "") == .receiveFailed)
    }

    /// Lines of libcurl 7.88.1, which decide whether a request was refused by GOAWAY.
    @Test(arguments: [
        ("Using Stream ID: 7 (easy handle 0x55d5c8f0a2b0)\n", 7, 0, false),
        ("recveived GOAWAY, error=0, last_stream=5", 0, 5, true),
        ("received GOAWAY, error=2, last_stream=2147483647", 0, 2_147_483_647, true),
        ("recveived GOAWAY, error=0", 0, 0, false), ("Connection #0 to host 127.0.0.1 left intact", 0, 0, false),
        (String(repeating: "r", count: 4096), 0, 0, false), ("", 0, 0, false),
    ])
    func linesAboutStreamsAreRead(line: String, stream: UInt32, last: UInt32, hasGoAway: Bool) {
        var log = curlew_stream_log()
        curlew_read_log_line(line, line.utf8.count, &log)
        #expect(log.stream == stream && log.last == last && log.has_goaway == hasGoAway)
    }
}
