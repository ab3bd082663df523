// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A response head as it came: the whole block of lines, the final empty one included.
package struct RawHead: Sendable {
    package var bytes: [UInt8]
    package var status: Int
    /// Whether one of its fields is `Content-Encoding`.
    package var isEncoded: Bool
    /// Whether it names another place to ask (RFC 9110 §15.4): a status that asks for it, and a `Location` field.
    package var isRedirect: Bool

    package init(bytes: [UInt8], status: Int, isEncoded: Bool = false, hasLocation: Bool = false) {
        self.bytes = bytes
        self.status = status
        self.isEncoded = isEncoded
        isRedirect = hasLocation && RawHead.redirecting(status)
    }

    /// Whether the body is a stream of events: whether `Content-Type` says `text/event-stream` (RFC 9110 §8.3).
    package var isEventStream: Bool {
        for line in bytes.split(separator: 0x0A) {
            guard let rest = RawHead.rest(of: line, after: "content-type:") else { continue }
            guard let end = RawHead.rest(of: rest.drop { $0 == 0x20 || $0 == 0x09 }, after: "text/event-stream") else {
                return false
            }
            // Nothing more, or a parameter.
            return end.first.map { $0 == 0x0D || $0 == 0x20 || $0 == 0x09 || $0 == 0x3B } ?? true
        }
        return false
    }

    /// What follows a word that is written in lower case here, and in any case there; nil where another word stands.
    private static func rest(of line: ArraySlice<UInt8>, after word: StaticString) -> ArraySlice<UInt8>? {
        let count = word.utf8CodeUnitCount
        guard line.count >= count else { return nil }
        let matches = word.withUTF8Buffer { zip($0, line).allSatisfy { $0 == $1 || $0 == $1 | 0x20 } }
        return matches ? line.dropFirst(count) : nil
    }

    private static func redirecting(_ status: Int) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
}

/// What was counted and measured by the time a transfer ended.
package struct RawMetrics: Sendable {
    package var queued: UInt64 = 0
    /// Microseconds since libcurl started, as libcurl counts them: each includes those before it.
    package var resolved: Int64 = 0
    package var connected: Int64 = 0
    package var secured: Int64 = 0
    package var readyToSend: Int64 = 0
    package var firstByte: Int64 = 0
    package var total: Int64 = 0
    /// Microseconds from libcurl's start until the last body byte was handed over; 0 without a body.
    package var bodySent: Int64 = 0
    package var requestHeadBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeadBytes: Int64 = 0
    package var responseBodyBytes: Int64 = 0
    package var version: Int = 0
    package var localAddress = ""
    package var localPort: Int = 0
    package var remoteAddress = ""
    package var remotePort: Int = 0
    package var isReused = false
    package var tlsVersion: String?
    package var tlsCipher: String?
    package var isResumed = false
    package var certificate: X509Certificate?

    package init() {}
}

/// Bytes moved so far, and how many there will be.
package struct Counters: Sendable, Equatable {
    package var sent: Int64 = 0
    package var received: Int64 = 0
    package var expectedToSend: Int64 = -1
    package var expectedToReceive: Int64 = -1
    package var startedAt: UInt64 = 0
    package var at: UInt64 = 0
    package var isFinished = false
    package var hasFailed = false

    package init() {}
}
