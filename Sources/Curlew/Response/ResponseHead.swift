// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Response has the head, the response with its value, and the code that validates and decodes bodies. It is pure and
// uses only Request, HTTP and Errors.

internal import CurlewSupport

/// The head of a response: status, protocol version and header fields.
///
/// The fields of a received head are parsed when they are first needed. Access to one field by name reads it from the
/// received bytes.
///
/// ```swift
/// guard head.status.isSuccess, head.contentType == "image/png" else { return }
/// ```
public struct ResponseHead: Sendable {
    /// The status.
    public let status: Status
    /// The protocol version of the response.
    public let version: ResponseHead.HTTPVersion
    /// The URL of the response, after redirects; empty for a head that was created without a URL.
    public var url: String
    /// The redirects that were followed before this response, oldest first; empty without redirects.
    public var history: [ResponseHead.RedirectHop] {
        get { notes?.history ?? [] }
        set { change { $0.history = newValue } }
    }
    /// The errors of the failed attempts before this response, oldest first; empty when the first attempt succeeded.
    public var earlier: [NetworkError] { tries?.earlier ?? [] }
    var tries: AttemptHistory? {
        get { notes?.tries }
        set { change { $0.tries = newValue } }
    }
    /// How the session's cache handled the request; nil without a cache.
    public internal(set) var cache: HTTPCache.Report? {
        get { notes?.cache }
        set { change { $0.cache = newValue } }
    }
    /// Facts that few responses have; an object, so that a head stays small.
    private var notes: Notes?
    private let source: Source

    private final class Notes: Sendable {
        let history: [ResponseHead.RedirectHop]
        let tries: AttemptHistory?
        let cache: HTTPCache.Report?

        init(_ values: NoteValues) { (history, tries, cache) = (values.history, values.tries, values.cache) }
    }

    private struct NoteValues {
        var history: [ResponseHead.RedirectHop] = []
        var tries: AttemptHistory?
        var cache: HTTPCache.Report?
    }

    private mutating func change(_ body: (inout NoteValues) -> Void) {
        var values = notes.map { NoteValues(history: $0.history, tries: $0.tries, cache: $0.cache) } ?? NoteValues()
        body(&values)
        notes = Notes(values)
    }

    /// Creates a head, for tests and caches.
    public init(
        status: Status, version: ResponseHead.HTTPVersion = .http1_1, fields: HeaderFields = [:], url: String = ""
    ) {
        self.status = status
        self.version = version
        self.url = url
        source = Source(fields)
    }

    /// Creates a head from received bytes (RFC 9112 §4, or as libcurl writes HTTP/2): a status line, field lines and an
    /// empty line.
    ///
    /// Nil when the status line is malformed.
    init?(rawBlock: [UInt8], url: String = "") {
        guard let line = StatusLine(rawBlock) else { return nil }
        status = line.status
        version = line.version
        self.url = url
        source = Source(rawBlock)
    }

    /// Creates a head from a block that was checked before; only the version is read at once, the rest on access.
    init(status: Status, judgedBlock: [UInt8], url: String) {
        self.status = status
        version = StatusLine.version(of: judgedBlock)
        self.url = url
        source = Source(judgedBlock)
    }

    /// All fields in the order received.
    ///
    /// The fields are parsed once, on first access.
    public var fields: HeaderFields { source.fields }

    /// The phrase of the status line; nil without a phrase, as always in HTTP/2 (RFC 9113 §8.3.2).
    public var reason: String? { source.reason }

    /// The values of a field, joined as by ``HeaderFields/subscript(_:)-(HeaderName)``, without parsing other fields.
    public subscript(name: HeaderName) -> String? { source.value(of: name) }

    /// The length of the body in bytes from `Content-Length` (RFC 9110 §8.6); nil when the field is missing, not a
    /// number, or repeated with different values.
    ///
    /// For a compressed body, it is the compressed length.
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

    /// Returns a copy with other fields, for example without `Content-Encoding` after decoding; the copy keeps the
    /// redirects and the earlier errors.
    public func with(fields: HeaderFields) -> ResponseHead {
        var copy = ResponseHead(status: status, version: version, fields: fields, url: url)
        copy.notes = notes
        return copy
    }
}

extension ResponseHead: Hashable, CustomStringConvertible {
    /// Whether both have the same status, version, URL and fields.
    ///
    /// Phrases are ignored, since they have no meaning. Redirects and earlier attempts are ignored, since they do not
    /// change the response.
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

/// The fields of a head: received bytes until all fields are needed, parsed values after that.
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

    /// The offset after the status line.
    private var fieldsStart: Int { StatusLine(block)?.end ?? 0 }
}
