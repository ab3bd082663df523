// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A response head as it was received: all lines including the final empty one.
package struct RawHead: Sendable {
    package var bytes: [UInt8]
    package var status: Int
    /// The known fields that the head contains.
    package var fields: HeadFields

    package init(bytes: [UInt8], status: Int, fields: HeadFields = []) {
        self.bytes = bytes
        self.status = status
        self.fields = fields
    }

    /// Whether the body is an event stream: `Content-Type` is `text/event-stream` (RFC 9110 §8.3).
    package var isEventStream: Bool {
        for line in bytes.split(separator: 0x0A) {
            guard let rest = RawHead.rest(of: line, after: "content-type:") else { continue }
            guard let end = RawHead.rest(of: rest.drop { $0 == 0x20 || $0 == 0x09 }, after: "text/event-stream") else {
                return false
            }
            // The value ends here, or a parameter follows.
            return end.first.map { $0 == 0x0D || $0 == 0x20 || $0 == 0x09 || $0 == 0x3B } ?? true
        }
        return false
    }

    /// Returns the bytes after a word, which is given in lower case and matches any case; nil if the line begins
    /// otherwise.
    private static func rest(of line: ArraySlice<UInt8>, after word: StaticString) -> ArraySlice<UInt8>? {
        let count = word.utf8CodeUnitCount
        guard line.count >= count else { return nil }
        let matches = word.withUTF8Buffer { zip($0, line).allSatisfy { $0 == $1 || $0 == $1 | 0x20 } }
        return matches ? line.dropFirst(count) : nil
    }
}

/// The counts and times that were measured when a transfer ended.
package struct RawMetrics: Sendable {
    package var queued: UInt64 = 0
    /// Microseconds since the transfer got its slot; each value includes the earlier ones.
    ///
    /// `resolved`, `connected` and `secured` are 0 for a reused connection.
    package var resolved: Int64 = 0
    package var connected: Int64 = 0
    package var secured: Int64 = 0
    package var readyToSend: Int64 = 0
    package var firstByte: Int64 = 0
    package var total: Int64 = 0
    /// Microseconds from the slot until libcurl read the last body byte; 0 without a body.
    package var bodySent: Int64 = 0
    package var requestHeadBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var responseHeadBytes: Int64 = 0
    package var responseBodyBytes: Int64 = 0
    package var version: Int = 0
    package var localAddress = ""
    package var localPort: Int = 0
    package var remoteAddress = ""
    /// The reason why HTTP/3 was not used; nil if it was used, or if the session does not allow it.
    package var withoutHTTP3: HTTP3Absence?
    package var remotePort: Int = 0
    package var isReused = false
    package var tlsVersion: String?
    package var tlsCipher: String?
    package var isResumed = false
    package var certificate: X509Certificate?
    /// The remark of the transfer's URL.
    package var remark: (any AnyObject & Sendable)?

    package init() {}
}

/// The bytes moved so far, and the expected numbers; -1 if unknown.
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
