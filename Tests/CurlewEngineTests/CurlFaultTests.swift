// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

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
}
