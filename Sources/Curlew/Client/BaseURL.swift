// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The base URL of a client's calls: an absolute http or https URL without query and fragment, checked when it is
/// created.
///
/// The initializer appends a "/" to a path that does not end in "/", so that a relative path extends the base path and
/// does not replace its last segment.
///
/// ```swift
/// let base: BaseURL = "https://api.example.com/v1"
/// let given = try BaseURL(environment["API"] ?? "")
/// ```
public struct BaseURL: Sendable, Hashable {
    /// The interpretation of a call's path that begins with "/".
    public enum Joining: String, Sendable, Hashable, Codable, CaseIterable {
        /// The path replaces the base URL's path, as RFC 3986 §5.2 specifies for references.
        case resolved
        /// The path is appended to the base URL's path and always stays below it, even if it begins with "//" or "?".
        ///
        /// A call throws `.invalidRequest` if ".." segments, encoded or not, would lead above the base URL's path, or
        /// if its path is an absolute URL that is not below the base URL.
        case joined
    }

    /// The normalized URL; its path ends in "/".
    public let text: String
    /// The interpretation of a call's path that begins with "/"; `.resolved` by default.
    public let joining: Joining
    let target: RequestTarget

    /// Creates a base URL from external text, such as a configuration value.
    ///
    /// - Parameters:
    ///   - text: An absolute http or https URL.
    ///   - joining: The interpretation of a call's path that begins with "/".
    /// - Throws: `NetworkError` of kind `invalidRequest` if the text is not an absolute http or https URL, or has a
    ///   query or a fragment.
    public init(_ text: String, joining: Joining = .resolved) throws(NetworkError) {
        let reference = URLReference(text)
        guard reference.query == nil, reference.fragment == nil else {
            throw NetworkError(
                invalid: .url, "A base URL must not have a query or a fragment: \(redactedURL(text)).",
                hint: "Put parameters that all calls share into the client's query.")
        }
        let target: RequestTarget
        do throws(InvalidURL) {
            target = try RequestTarget(text)
            self.target = target.path.hasSuffix("/") ? target : try RequestTarget(target.text + "/")
        } catch {
            throw NetworkError(
                invalid: error.reason.flaw, "\(error).", hint: "Use an absolute http or https URL as the base URL.",
                cause: error)
        }
        self.text = self.target.text
        self.joining = joining
    }

    /// Whether the scheme is https.
    public var isSecure: Bool { target.scheme == .https }

    /// The host, in lower case.
    public var host: String { target.host }

    /// Returns the URL for a call's path, and whether that URL has another origin (RFC 6454 §4).
    func url(of path: String) -> (text: String, isCrossOrigin: Bool) {
        if Self.isSimpleSuffix(path) { return (text + path, false) }
        let isAbsolute = Self.isAbsolute(path)
        if joining == .joined, !isAbsolute { return (joined(path), false) }
        // The text before a colon in the first segment is not a scheme: "./" prevents that reading (RFC 3986 §4.2).
        let hasColon = !isAbsolute && URLReference(path).scheme != nil
        let url = URLReference.resolve(hasColon ? "./" + path : path, against: target)
        if url.hasPrefix(text) { return (url, false) }
        guard let other = try? RequestTarget(url) else { return (url, true) }
        return (url, other.scheme != target.scheme || other.host != target.host || other.port != target.port)
    }

    /// Whether a path leaves this URL although the joining is `.joined`.
    func excludes(_ path: String) -> Bool {
        guard joining == .joined, !Self.isSimpleSuffix(path) else { return false }
        guard Self.isAbsolute(path) else {
            return Self.normalizedBelowBase(path.utf8.prefix(while: Self.isInPath)).isAbove
        }
        guard let other = try? RequestTarget(URLReference.resolve(path, against: target)),
            other.isSameOrigin(as: target), other.path.hasPrefix(target.path)
        else { return true }
        return Self.normalizedBelowBase(other.path.utf8.dropFirst(target.path.utf8.count)).isAbove
    }

    /// Whether a path is an absolute URL.
    static func isAbsolute(_ path: String) -> Bool {
        let start = String(decoding: path.utf8.prefix(8), as: UTF8.self).lowercased()
        return start.hasPrefix("http://") || start == "https://"
    }

    /// Whether resolving a path only appends it to the base URL.
    private static func isSimpleSuffix(_ path: String) -> Bool {
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

    /// Returns the URL of a path under the `.joined` rule; it cannot leave the base URL's path.
    private func joined(_ path: String) -> String {
        let whole = path.utf8.prefix(while: Self.isInPath)
        return text + String(decoding: Self.normalizedBelowBase(whole).path, as: UTF8.self) + path[whole.endIndex...]
    }

    /// Returns a path without its leading slashes and dot segments (RFC 3986 §5.2.4), and whether its dot segments lead
    /// above its start.
    private static func normalizedBelowBase(_ path: some Collection<UInt8>) -> (path: [UInt8], isAbove: Bool) {
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

    /// Returns 1 for a "." segment, 2 for a ".." segment, encoded or not (RFC 3986 §6.2.2.2), and 0 for any other
    /// segment.
    private static func dots(in segment: [UInt8]) -> Int {
        guard (1...6).contains(segment.count) else { return 0 }
        let text = String(decoding: segment, as: UTF8.self).lowercased().replacing("%2e", with: ".")
        return text == "." ? 1 : text == ".." ? 2 : 0
    }

    private static func isInPath(_ byte: UInt8) -> Bool { byte != UInt8(ascii: "?") && byte != UInt8(ascii: "#") }
}

extension BaseURL: ExpressibleByStringLiteral {
    /// Creates a base URL from a string literal.
    /// - Precondition: The literal is a valid base URL; use ``init(_:joining:)`` for external text.
    public init(stringLiteral value: String) {
        do throws(NetworkError) {
            try self.init(value)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension BaseURL: CustomStringConvertible, CustomReflectable {
    /// The URL, without user-info.
    public var description: String { redactedURL(text) }

    /// A mirror that shows only the description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension BaseURL: Codable {
    private enum CodingKeys: CodingKey { case url, joining }

    /// Decodes a string, or an object with `url` and `joining`.
    /// - Throws: `DecodingError` if the value is not a valid base URL.
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

    /// Encodes an object with `url` and `joining`; the URL is encoded without its user-info.
    /// - Throws: The error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(redactedURL(text), forKey: .url)
        try container.encode(joining, forKey: .joining)
    }
}
