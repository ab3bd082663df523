// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The parts of a request that the rules of a cache need.
struct CacheRequest: Sendable {
    let method: Method
    /// The URL in normal form without user-info, which is the primary key (RFC 9111 §2).
    let url: String
    /// The fields of the request itself.
    let fields: HeaderFields
    /// The fields that the session adds if the request does not have them.
    let defaults: HeaderFields
    let policy: Request.CachePolicy
    /// Whether the body of an encoded response is decoded.
    let decodes: Bool
    let credentials: CacheRules.Credentials
    let directives: CacheControl

    init(
        _ method: Method, _ url: String, fields: HeaderFields = [:], defaults: HeaderFields = [:],
        policy: Request.CachePolicy = .standard, decodes: Bool = true, credentials: CacheRules.Credentials = .none
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.defaults = defaults
        self.policy = policy
        self.decodes = decodes
        self.credentials = credentials
        if let text = fields[.cacheControl] {
            directives = CacheControl(text)
        } else {
            // A request without `Cache-Control` may come from an old program (RFC 9111 §5.4).
            let isReload = fields["Pragma"]?.lowercased().contains("no-cache") ?? false
            directives = CacheControl { $0.noCache = isReload }
        }
    }

    /// Returns these parts of the request as it was sent, with the fields that interceptors behind the cache have
    /// added.
    ///
    /// The dictionary of the cache changes only the coding of a response, which is stored decoded, so the fields that
    /// name it do not count.
    func sent(_ request: Request) -> CacheRequest {
        var sent = request.fields
        if request.dictionary != nil {
            for name in [HeaderName.acceptEncoding, .availableDictionary, .dictionaryID] { sent[name] = fields[name] }
        }
        return CacheRequest(
            method, url, fields: sent, defaults: defaults, policy: policy, decodes: decodes,
            credentials: credentials)
    }

    /// Returns the value of a field as it is sent, in a form in which equal lists are equal: without white space around
    /// commas (RFC 9111 §4.1); nil without such a field.
    ///
    /// The value of a sensitive field is replaced by its SHA-256.
    func normalizedValue(_ name: HeaderName) -> String? {
        guard let value = fields[name] ?? defaults[name] else { return nil }
        let text = Self.withoutOptionalSpace(value)
        return name.isHidden ? CacheKey.digest(text) : text
    }

    /// Returns a list without white space around its commas, except in quoted strings.
    private static func withoutOptionalSpace(_ list: String) -> String {
        var (result, pending, isQuoted, isEscaped) = ([UInt8](), [UInt8](), false, false)
        for byte in list.utf8 {
            if !isQuoted, byte.isLinearSpace {
                if result.last != UInt8(ascii: ","), !result.isEmpty { pending.append(byte) }
                continue
            }
            if isQuoted || byte != UInt8(ascii: ",") { result += pending }
            pending = []
            result.append(byte)
            if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The request's preconditions (RFC 9110 §13.1), with which it asks the server itself.
    static let preconditions: [HeaderName] = [
        .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince, .ifRange,
    ]

    /// Whether the request has a precondition or a range of its own.
    var asksItself: Bool { fields.contains { $0.name == .range || Self.preconditions.contains($0.name) } }

    /// Whether the request is sent by https.
    var isSecure: Bool { url.hasPrefix("https:") }

    /// Whether the request may be answered from a cache only.
    var isOffline: Bool { policy == .onlyIfCached || directives.onlyIfCached }

    /// Whether the request accepts a stored response of any age.
    var acceptsAnyAge: Bool { policy == .preferCache || policy == .onlyIfCached }
}

extension HeaderFields {
    /// The names in the `Vary` field; contains "*" if no other request can match (RFC 9110 §12.5.5).
    var varyingNames: [HeaderName] {
        guard let text = self[.vary] else { return [] }
        return Self.names(in: text)
    }

    /// Returns the valid names in a list, each of them once.
    static func names(in list: String) -> [HeaderName] {
        var names: [HeaderName] = []
        for name in list.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }).map({ HeaderName(String($0)) })
        {
            if name.isValid, !names.contains(name) { names.append(name) }
        }
        return names
    }
}
