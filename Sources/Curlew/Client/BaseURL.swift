// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Where a client's calls go: an absolute http or https URL, checked when it is made, without query and fragment.
///
/// A path that does not end in "/" gets one, so that relative paths are put below it and do not replace its last segment.
///
/// ```swift
/// let base: BaseURL = "https://api.example.com/v1"
/// let given = try BaseURL(environment["API"] ?? "")
/// ```
public struct BaseURL: Sendable, Hashable {
    /// What a path that begins with "/" means.
    public enum Joining: String, Sendable, Hashable, Codable, CaseIterable {
        /// It replaces the base URL's path, as RFC 3986 §5.2 says for references.
        case resolved
        /// It is put below the base URL's path, which nothing leaves: "//host" and "?" stay below it too. A path whose
        /// ".." segments, however they are encoded, lead above it is refused with `.invalidRequest` when a call is made,
        /// and so is an absolute URL that is not below the base URL.
        case joined
    }

    /// The URL in normal form; its path ends in "/".
    public let text: String
    /// What a path that begins with "/" means; `.resolved` unless set.
    public let joining: Joining
    let target: RequestTarget

    /// Takes a URL from outside, such as a configuration.
    ///
    /// - Parameters:
    ///   - text: An absolute http or https URL.
    ///   - joining: What a path that begins with "/" means.
    /// - Throws: `NetworkError` of kind `invalidRequest` when it is no such URL, or has a query or a fragment.
    public init(_ text: String, joining: Joining = .resolved) throws(NetworkError) {
        let reference = URLReference(text)
        guard reference.query == nil, reference.fragment == nil else {
            throw NetworkError(
                invalid: .url, "A base URL has no query and no fragment: \(redactedURL(text)).",
                hint: "Put what every call asks for into the client's query.")
        }
        let target: RequestTarget
        do throws(InvalidURL) {
            target = try RequestTarget(text)
            self.target = target.path.hasSuffix("/") ? target : try RequestTarget(target.text + "/")
        } catch {
            throw NetworkError(
                invalid: error.reason.flaw, "\(error).", hint: "A base URL is an absolute http or https URL.",
                cause: error)
        }
        self.text = self.target.text
        self.joining = joining
    }

    /// Whether it is an https URL.
    public var isSecure: Bool { target.scheme == .https }

    /// The host in lower case.
    public var host: String { target.host }

    /// The URL of a path below this one, and whether it leads to another origin (RFC 6454 §4).
    func url(of path: String) -> (text: String, isElsewhere: Bool) {
        if Self.isPlain(path) { return (text + path, false) }
        let isAbsolute = Self.isAbsolute(path)
        if joining == .joined, !isAbsolute { return (joined(path), false) }
        // A colon in the first segment makes no scheme of what stands before it (RFC 3986 §4.2).
        let hasColon = !isAbsolute && URLReference(path).scheme != nil
        let url = URLReference.resolve(hasColon ? "./" + path : path, against: target)
        if url.hasPrefix(text) { return (url, false) }
        guard let other = try? RequestTarget(url) else { return (url, true) }
        return (url, other.scheme != target.scheme || other.host != target.host || other.port != target.port)
    }

    /// Whether a path that has to stay below this URL would lead elsewhere.
    func isLeft(by path: String) -> Bool {
        guard joining == .joined, !Self.isPlain(path) else { return false }
        guard Self.isAbsolute(path) else { return Self.below(path.utf8.prefix(while: Self.isInPath)).isAbove }
        guard let other = try? RequestTarget(URLReference.resolve(path, against: target)),
            other.isSameOrigin(as: target), other.path.hasPrefix(target.path)
        else { return true }
        return Self.below(other.path.utf8.dropFirst(target.path.utf8.count)).isAbove
    }

    /// Whether a path is a URL of its own.
    static func isAbsolute(_ path: String) -> Bool {
        let start = String(decoding: path.utf8.prefix(8), as: UTF8.self).lowercased()
        return start.hasPrefix("http://") || start == "https://"
    }

    /// Whether resolving would only put it behind the base URL.
    private static func isPlain(_ path: String) -> Bool {
        var isAtStart = true
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "?"), UInt8(ascii: "#"): return path.utf8.first != byte
            case UInt8(ascii: ":"): return false
            case UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "%"): if isAtStart { return false }
            default: break
            }
            isAtStart = byte == UInt8(ascii: "/")
        }
        return true
    }

    /// The URL of a path that cannot leave the base URL's.
    private func joined(_ path: String) -> String {
        let whole = path.utf8.prefix(while: Self.isInPath)
        return text + String(decoding: Self.below(whole).path, as: UTF8.self) + path[whole.endIndex...]
    }

    /// A path without its leading slashes and dot segments (RFC 3986 §5.2.4), and whether these lead above its start.
    private static func below(_ path: some Collection<UInt8>) -> (path: [UInt8], isAbove: Bool) {
        let slash = UInt8(ascii: "/")
        var segments: [[UInt8]] = []
        var isAbove = false
        var endsInDots = false
        for part in path.split(separator: slash, omittingEmptySubsequences: false) {
            let segment = Array(part)
            let dots = dots(in: segment)
            endsInDots = dots > 0
            if dots == 0, !(segments.isEmpty && segment.isEmpty) { segments.append(segment) }
            if dots == 2, segments.popLast() == nil { isAbove = true }
        }
        if endsInDots, !segments.isEmpty { segments.append([]) }
        return (Array(segments.joined(separator: [slash])), isAbove)
    }

    /// 1 for a segment that is ".", 2 for "..", encoded or not (RFC 3986 §6.2.2.2); 0 for all else.
    private static func dots(in segment: [UInt8]) -> Int {
        guard (1...6).contains(segment.count) else { return 0 }
        let text = String(decoding: segment, as: UTF8.self).lowercased().replacing("%2e", with: ".")
        return text == "." ? 1 : text == ".." ? 2 : 0
    }

    private static func isInPath(_ byte: UInt8) -> Bool { byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#") }
}

extension BaseURL: ExpressibleByStringLiteral {
    /// A base URL written as a literal.
    /// - Precondition: It is one; text from outside goes through ``init(_:joining:)``.
    public init(stringLiteral value: String) {
        do throws(NetworkError) {
            try self.init(value)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension BaseURL: CustomStringConvertible, CustomReflectable {
    /// The URL without user-info.
    public var description: String { redactedURL(text) }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension BaseURL: Codable {
    private enum CodingKeys: CodingKey { case url, joining }

    /// Decodes a text, or an object with `url` and `joining`.
    /// - Throws: `DecodingError` when it is no base URL.
    public init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            self = try Self.checked(text, .resolved, decoder)
            return
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let joining = try container.decodeIfPresent(Joining.self, forKey: .joining) ?? .resolved
        self = try Self.checked(container.decode(String.self, forKey: .url), joining, decoder)
    }

    private static func checked(_ text: String, _ joining: Joining, _ decoder: any Decoder) throws -> BaseURL {
        do throws(NetworkError) {
            return try BaseURL(text, joining: joining)
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.message))
        }
    }

    /// Encodes an object with `url` and `joining`; user-info is left out.
    /// - Throws: What the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(redactedURL(text), forKey: .url)
        try container.encode(joining, forKey: .joining)
    }
}
