// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// The response to a player, without its body.
struct PlayerResponse: Sendable, Hashable {
    let status: Int
    private(set) var fields: [String]
    /// The bytes of the file that follow; nil without a body.
    var body: Body?

    struct Body: Sendable, Hashable {
        var start: Int64
        /// The position behind the last byte; nil for the end of a file of unknown length.
        var end: Int64?
    }

    private static let phrases = [
        200: "OK", 206: "Partial Content", 304: "Not Modified", 400: "Bad Request", 404: "Not Found",
        405: "Method Not Allowed", 408: "Request Timeout", 412: "Precondition Failed", 416: "Range Not Satisfiable",
        421: "Misdirected Request", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
        502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
    ]

    /// Creates a response without a body.
    init(status: Int, _ fields: [String] = []) {
        self.status = status
        self.fields = fields + ["Content-Length: 0"]
    }

    /// Creates the response for a file, by the conditions and the range of a request (RFC 9110 §13.2.2, §14.2).
    init(_ request: PlayerRequest, _ facts: MediaFacts) {
        var described: [String] = []
        switch facts.validator {
        case .tag(let tag)?: described.append("ETag: \(tag)")
        case .lastModified(let date)?: described.append("Last-Modified: \(date)")
        case nil: break
        }
        if let failed = Self.failedCondition(request, facts.validator) {
            status = failed
            fields = described + (failed == 304 ? [] : ["Content-Length: 0"])
            return
        }
        if let type = facts.contentType, type.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) {
            described.append("Content-Type: \(type)")
        }
        guard let length = facts.length else {
            (status, body) = (200, Body(start: 0, end: nil))
            fields = described + (request.isCurrent ? ["Transfer-Encoding: chunked"] : [])
            return
        }
        described.append("Accept-Ranges: bytes")
        let isMeant = request["if-range"].map { Self.isStrong($0, facts.validator) } ?? true
        // Ranges are defined for GET only (RFC 9110 §14.2).
        let range = isMeant && request.method == "GET" ? request["range"] : nil
        switch PlayerRange(range, length: length) {
        case .whole:
            (status, body) = (200, Body(start: 0, end: length))
            fields = described + ["Content-Length: \(length)"]
        case .part(let range):
            (status, body) = (206, Body(start: range.lowerBound, end: range.upperBound))
            let last = range.upperBound - 1
            fields =
                described + [
                    "Content-Range: bytes \(range.lowerBound)-\(last)/\(length)", "Content-Length: \(range.count)",
                ]
        case .unsatisfiable:
            status = 416
            fields = described + ["Content-Range: bytes */\(length)", "Content-Length: 0"]
        }
    }

    /// Returns the status for a condition that does not hold; nil if all of them hold.
    private static func failedCondition(_ request: PlayerRequest, _ validator: ResumeToken.Validator?) -> Int? {
        if let list = request["if-match"], list != "*", !tags(list).contains(where: { isStrong($0, validator) }) {
            return 412
        }
        if let list = request["if-none-match"] {
            // The comparison is the weak one (RFC 9110 §13.1.2).
            let isKnown = tags(list).contains { tag in
                validator == .tag(tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag)
            }
            return list == "*" || isKnown ? 304 : nil
        }
        if case .lastModified(let date)? = validator,
            let since = request["if-modified-since"].flatMap({ HTTPDate($0) }),
            let changed = HTTPDate(date), changed.seconds <= since.seconds
        {
            return 304
        }
        return nil
    }

    private static func isStrong(_ text: String, _ validator: ResumeToken.Validator?) -> Bool {
        validator?.field == text
    }

    /// Splits a list of entity tags; a tag may have a comma.
    private static func tags(_ list: String) -> [String] {
        var (tags, tag, isQuoted) = ([String](), "", false)
        for character in list {
            if character == "\"" { isQuoted.toggle() }
            if character == ",", !isQuoted {
                tags.append(tag)
                tag = ""
            } else if isQuoted || character != " " && character != "\t" {
                tag.append(character)
            }
        }
        return (tags + [tag]).filter { !$0.isEmpty }
    }

    /// Returns whether the body is sent in chunks (RFC 9112 §7.1).
    var isChunked: Bool { fields.contains("Transfer-Encoding: chunked") }

    /// Whether the end of the connection ends the body.
    var endsWithConnection: Bool { body != nil && body?.end == nil && !isChunked }

    /// Returns the bytes of the head.
    func head(keepsAlive: Bool) -> [UInt8] {
        var lines = ["HTTP/1.1 \(status) \(Self.phrases[status] ?? "")", "Date: \(HTTPDate(Date()))"]
        lines += fields
        lines += ["X-Content-Type-Options: nosniff", "Connection: \(keepsAlive ? "keep-alive" : "close")", "", ""]
        return Array(lines.joined(separator: "\r\n").utf8)
    }
}
