// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Testing

@testable import CurlewEngine

@Suite("CurlFault")
struct CurlFaultTests {
    @Test(arguments: CurlFault.texts.indices)
    func everyKnownTextMapsToItsFault(index: Int) {
        let row = CurlFault.texts[index]
        for code in row.codes.isEmpty ? [8, 18, 56] : row.codes {
            #expect(CurlFault(code: code, text: row.example) == row.fault, "\(row.versions)")
        }
        #expect(row.example.contains(row.marker) && !row.versions.isEmpty)
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
