// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The meaning of a libcurl result: every decision that depends on a code or a text of libcurl depends on it.
package enum CurlFault: Hashable, Sendable {
    case unsupportedProtocol, malformedURL
    case cannotResolveProxy, cannotResolveHost, cannotConnect
    /// A SOCKS proxy refused to connect, or did not speak SOCKS.
    case socksFailed
    case malformedResponse, badContentCoding
    /// libcurl rejected an argument. While a head arrives, the argument is a field line of the response.
    case badArgument
    /// A chunked body that is malformed.
    case malformedChunks
    /// A head that is larger than libcurl's limit for all fields.
    case headTooLarge
    /// Memory is exhausted; while a head arrives, one of its lines is longer than libcurl accepts.
    case outOfMemory
    /// A value is larger than libcurl accepts; the code for a long line of a head since libcurl 8.6.
    case tooLarge
    case timedOut
    /// The connection ended before the whole body arrived; over HTTP/2 also before the head.
    case truncated
    /// The server closed the connection without a response.
    case emptyReply
    case sendFailed, receiveFailed
    /// libcurl has retried a request that HTTP/2 connections refused, and gives up.
    case retriesExhausted
    /// The HTTP/2 connection failed, mostly because the server shuts it down.
    case connectionFailed
    /// The HTTP/2 stream was reset.
    case streamReset
    /// The HTTP/2 stream was reset before the server processed the request (RFC 9113 §8.7).
    case streamRefused
    /// The HTTP/2 stream ended without an error and without a text of libcurl; the response may be complete.
    case streamClosed
    /// The HTTP/2 stream ended without an error before libcurl received a whole head.
    case streamClosedInsideHead
    /// One side violated HTTP/2.
    case protocolViolation
    case handshakeFailed
    /// The first bytes of the server are not TLS.
    case plainText
    case tlsFailed
    case untrusted
    /// The body has to be sent again and cannot be read again.
    case cannotRewind
    case other

    /// A text that decides the meaning of a result, because the code alone does not.
    package struct Text: Sendable {
        /// The codes for which the text counts; empty for any code.
        package let codes: [UInt32]
        /// The part of the text that does not vary.
        package let marker: String
        package let fault: CurlFault
        /// A text as libcurl or its TLS library prints it.
        package let example: String
        /// The versions in which the text was found; other versions between them may print it too.
        package let versions: String
    }

    /// The texts, in the order in which they are compared.
    package static let texts = [
        Text(
            codes: [], marker: "chunked-encod", fault: .malformedChunks,
            example: "Illegal or missing hexadecimal sequence in chunked-encoding", versions: "libcurl 7.88.1, 8.23.0"),
        Text(
            codes: [], marker: "chunked-encod", fault: .malformedChunks,
            example: "Failed reading the chunked-encoded stream", versions: "libcurl 7.88.1, 8.23.0"),
        Text(
            codes: [56], marker: "Too large response headers", fault: .headTooLarge,
            example: "Too large response headers: 307201 > 307200", versions: "libcurl 7.88.1 (Debian), 8.23.0"),
        Text(
            codes: [56], marker: "Connection died", fault: .retriesExhausted,
            example: "Connection died, tried 5 times before giving up", versions: "libcurl 7.88.1, 8.23.0"),
        Text(
            codes: [56], marker: "nghttp2_session_mem_recv", fault: .protocolViolation,
            example:
                "process_pending_input: nghttp2_session_mem_recv() returned -902:The user callback function failed",
            versions: "libcurl 7.88.1, 8.23.0"),
        Text(
            codes: [92], marker: "REFUSED_STREAM", fault: .streamRefused,
            example: "HTTP/2 stream 1 was not closed cleanly: REFUSED_STREAM (err 7)", versions: "libcurl 7.88.1"),
        Text(
            codes: [92], marker: "refused by server", fault: .streamRefused,
            example: "HTTP/2 stream 1 refused by server, try again on a new connection", versions: "libcurl 8.23.0"),
        Text(
            codes: [92], marker: "PROTOCOL_ERROR", fault: .protocolViolation,
            example: "HTTP/2 stream 1 was not closed cleanly: PROTOCOL_ERROR (err 1)", versions: "libcurl 7.88.1"),
        Text(
            codes: [92], marker: "PROTOCOL_ERROR", fault: .protocolViolation,
            example: "HTTP/2 stream 1 reset by server (error 0x1 PROTOCOL_ERROR)", versions: "libcurl 8.23.0"),
        Text(
            codes: [92], marker: "closed cleanly, but", fault: .streamClosedInsideHead,
            example:
                "HTTP/2 stream 1 was closed cleanly, but before getting all response header fields, treated as error",
            versions: "libcurl 7.88.1, 8.23.0"),
        // OpenSSL has a reason of its own for a response that starts like HTTP.
        Text(
            codes: [35], marker: "wrong version number", fault: .plainText,
            example: "error:0A00010B:SSL routines::wrong version number", versions: "OpenSSL 3.0"),
        Text(
            codes: [35], marker: ":http request", fault: .plainText,
            example: "error:0A00009C:SSL routines::http request", versions: "OpenSSL 3.0"),
    ]

    /// Classifies a result.
    ///
    /// - Parameters:
    ///   - code: The number of the `CURLcode`; numbers never change (libcurl-errors).
    ///   - text: The text that libcurl wrote for this failure, or its text for the code.
    ///     An empty text means that libcurl wrote nothing.
    package init(code: UInt32, text: String) {
        let found = CurlFault.texts.first { row in
            (row.codes.isEmpty || row.codes.contains(code)) && text.contains(row.marker)
        }
        // libcurl writes a text for every reset of an HTTP/2 stream except a clean one.
        self = found?.fault ?? (code == 92 && text.isEmpty ? .streamClosed : CurlFault(code: code))
    }

    private init(code: UInt32) {
        self =
            switch code {
            case 1: .unsupportedProtocol
            case 3: .malformedURL
            case 5: .cannotResolveProxy
            case 6: .cannotResolveHost
            case 7: .cannotConnect
            case 8: .malformedResponse
            case 16: .connectionFailed
            case 18: .truncated
            case 27: .outOfMemory
            case 28: .timedOut
            case 35: .handshakeFailed
            case 43: .badArgument
            case 52: .emptyReply
            case 55: .sendFailed
            case 56: .receiveFailed
            case 58, 59, 66, 77, 80, 83, 90, 91, 98: .tlsFailed
            case 60: .untrusted
            case 61: .badContentCoding
            case 65: .cannotRewind
            case 92: .streamReset
            case 97: .socksFailed
            case 100: .tooLarge
            default: .other
            }
    }
}
