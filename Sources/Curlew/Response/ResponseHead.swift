// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Response is what came back: the head, the response around a value, and what judges and decodes bodies. Pure; it may
internal import CurlewSupport

// name Request, HTTP and Errors, and every room to its right reads it.

/// The head of a response: status, protocol version and header fields.
///
/// The fields of a head that came from the network are parsed when they are first needed; asking for one field by name
/// reads it from the received bytes.
///
/// ```swift
/// guard head.status.isSuccess, head.contentType == "image/png" else { return }
/// ```
public struct ResponseHead: Sendable {
    /// The status.
    public let status: Status
    /// The protocol version the response came with.
    public let version: HTTPVersion
    /// Where the response came from, after redirects; empty when it was made by hand.
    public var url: String
    /// The redirects that were followed on the way to this response, oldest first; empty when there were none.
    public var history: [RedirectHop] = []
    /// Why the tries before the one that brought this response failed, the first one first; empty when it was the first.
    public var earlier: [NetworkError] { tries?.earlier ?? [] }
    var tries: TryHistory?
    private let source: Source

    /// A head made by hand, for tests and caches.
    public init(
        status: Status, version: HTTPVersion = .http1_1, fields: HeaderFields = [:], url: String = ""
    ) {
        self.status = status
        self.version = version
        self.url = url
        source = Source(fields)
    }

    /// A head as it was received (RFC 9112 §4, or as libcurl writes HTTP/2): a status line, field lines and an empty
    /// line.
    ///
    /// Nil when the status line is malformed.
    init?(rawBlock: [UInt8], url: String = "") {
        guard let line = StatusLine(rawBlock) else { return nil }
        status = line.status
        version = line.version
        self.url = url
        source = Source(rawBlock)
    }

    /// A head that was judged already, of which nothing but the version is read before it is asked for.
    init(status: Status, judgedBlock: [UInt8], url: String) {
        self.status = status
        version = StatusLine.version(of: judgedBlock)
        self.url = url
        source = Source(judgedBlock)
    }

    /// All fields in the order received.
    ///
    /// Parsed once, when first asked for.
    public var fields: HeaderFields { source.fields }

    /// The phrase of the status line; nil when there is none, as always in HTTP/2 (RFC 9113 §8.3.2).
    public var reason: String? { source.reason }

    /// The values of a field, joined as ``HeaderFields/subscript(_:)-(HeaderName)`` does, without parsing the others.
    public subscript(name: HeaderName) -> String? { source.value(of: name) }

    /// The length of the body in bytes that `Content-Length` announces (RFC 9110 §8.6); nil when it is missing, not a
    /// number, or given twice with different values.
    ///
    /// Of a compressed body, the compressed length.
    public var contentLength: Int64? {
        guard let text = self[.contentLength] else { return nil }
        let members = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            .map { $0.drop(while: \.isLinearSpace) }
        let first = members[0]
        guard !first.isEmpty, first.allSatisfy(ByteSet.digits.contains), members.allSatisfy({ $0.elementsEqual(first) })
        else { return nil }
        return Int64(Substring(first))
    }

    /// The value of `Content-Type`, with its parameters (RFC 9110 §8.3).
    public var contentType: String? { self[.contentType] }

    /// A copy with other fields, for instance without `Content-Encoding` after decoding; it keeps the history.
    public func with(fields: HeaderFields) -> ResponseHead {
        var copy = ResponseHead(status: status, version: version, fields: fields, url: url)
        copy.history = history
        copy.tries = tries
        return copy
    }
}

extension ResponseHead: Hashable, CustomStringConvertible {
    /// Whether both have the same status, version, URL and fields.
    ///
    /// Phrases are ignored, as they mean nothing, and so are redirects and tries: a response is the same however it was
    /// reached.
    public static func == (lhs: ResponseHead, rhs: ResponseHead) -> Bool {
        lhs.status == rhs.status && lhs.version == rhs.version && lhs.url == rhs.url && lhs.fields == rhs.fields
    }

    /// Hashes status, version and URL.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(status)
        hasher.combine(version)
        hasher.combine(url)
    }

    /// The status line and one line per field, redacted.
    public var description: String {
        (["\(version) \(status)".escapingControls] + fields.map(\.description)).joined(separator: "\n")
    }
}

/// The fields of a head: received bytes until somebody wants all of them, values after that.
private final class Source: Sendable {
    private let block: [UInt8]
    private let parsed = Once<HeaderFields>()

    init(_ fields: HeaderFields) {
        block = []
        _ = parsed.value { fields }
    }

    init(_ block: [UInt8]) { self.block = block }

    var fields: HeaderFields {
        parsed.value { HeaderFields(parsing: block, from: fieldsStart) }
    }

    var reason: String? {
        guard let range = StatusLine(block)?.reason, !range.isEmpty else { return nil }
        return String(decoding: block[range], as: UTF8.self)
    }

    func value(of name: HeaderName) -> String? {
        if let known = parsed.current { return known[name] }
        return HeaderFields.value(of: name, in: block, from: fieldsStart)
    }

    /// After the status line.
    private var fieldsStart: Int { StatusLine(block)?.end ?? 0 }
}
