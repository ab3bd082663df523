// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The directives of a `Cache-Control` field, in a request or in a response (RFC 9111 §5.2).
///
/// ```swift
/// var request: Request = "https://api.example.com/users"
/// request.fields[.cacheControl] = CacheControl { $0.maxAge = .seconds(60) }.description
/// let isUncacheable = response.head.cacheControl.noStore
/// ```
///
/// Times have whole seconds. The parser accepts everything: it ignores members that are not directives, uses the first
/// of repeated directives (for field names, all of them), and reads an invalid time as zero, which makes a response
/// stale (RFC 9111 §4.2.1).
public struct CacheControl: Sendable, Hashable {
    /// `max-age`: how long a response is fresh, or the maximum age that a request accepts (RFC 9111 §5.2.1.1,
    /// §5.2.2.1).
    public var maxAge: Duration?
    /// `s-maxage`: how long a response is fresh in a shared cache (RFC 9111 §5.2.2.10).
    public var sharedMaxAge: Duration?
    /// `max-stale`: for how long after its end of freshness a request accepts a response; ``unlimited`` for any time
    /// (RFC 9111 §5.2.1.2).
    public var maxStale: Duration?
    /// `min-fresh`: how long a response must stay fresh for a request (RFC 9111 §5.2.1.3).
    public var minFresh: Duration?
    /// `stale-while-revalidate`: how long a stale response may be used while it is validated (RFC 5861 §3).
    public var staleWhileRevalidate: Duration?
    /// `stale-if-error`: how long a stale response may be used instead of an error (RFC 5861 §4).
    public var staleIfError: Duration?
    /// `no-cache` without field names: use a stored response only after its validation (RFC 9111 §5.2.1.4, §5.2.2.4).
    public var noCache = false
    /// The field names of `no-cache`: these fields are used only after a validation.
    public var noCacheFields: [HeaderName] = []
    /// `no-store`: do not store the response (RFC 9111 §5.2.1.5, §5.2.2.5).
    public var noStore = false
    /// `only-if-cached`: do not send the request (RFC 9111 §5.2.1.7).
    public var onlyIfCached = false
    /// `no-transform`: no intermediary may change the content (RFC 9111 §5.2.1.6, §5.2.2.6).
    public var noTransform = false
    /// `must-revalidate`: never use the response when it is stale (RFC 9111 §5.2.2.2).
    public var mustRevalidate = false
    /// `proxy-revalidate`: the same for shared caches (RFC 9111 §5.2.2.8).
    public var proxyRevalidate = false
    /// `must-understand`: store the response only if its status is understood (RFC 9111 §5.2.2.3).
    public var mustUnderstand = false
    /// `public`: any cache may store the response (RFC 9111 §5.2.2.9).
    public var isPublic = false
    /// `private` without field names: shared caches must not store the response (RFC 9111 §5.2.2.7).
    public var isPrivate = false
    /// The field names of `private`: shared caches must not store these fields.
    public var privateFields: [HeaderName] = []
    /// `immutable`: the response does not change while it is fresh (RFC 8246).
    public var isImmutable = false
    /// Unknown directives, as they were received.
    public var others: [String] = []

    /// The longest time that a directive can name, about 68 years; as `max-stale` it stands for any time.
    public static let unlimited = Duration.seconds(Int64(1) << 31)

    /// Creates an empty set of directives.
    public init() {}

    /// Creates directives with a closure that changes an empty set.
    /// - Throws: The error of the closure.
    public init(_ configure: (inout CacheControl) throws -> Void) rethrows { try configure(&self) }

    /// Parses the value of a field, or of several fields joined by commas.
    public init(_ text: String) {
        var seen: [String] = []
        for member in DirectiveMember.all(in: text) {
            switch member.name {
            // Each of several lists of field names counts.
            case "no-cache": member.add(to: &noCacheFields, or: &noCache)
            case "private": member.add(to: &privateFields, or: &isPrivate)
            case _ where seen.contains(member.name): break
            default:
                seen.append(member.name)
                add(member)
            }
        }
    }

    /// Reads the members of a targeted field (RFC 9213 §2.1): a member with a value of a wrong type is ignored.
    init(targeted members: [String: StructuredField.Member]) {
        for (name, member) in members {
            switch member.bare {
            case .integer(let number)? where number >= 0:
                if Self.timed.contains(name) { add(DirectiveMember(name, "\(number)")) }
            case .boolean(true)? where name == "no-cache": noCache = true
            case .boolean(true)? where name == "private": isPrivate = true
            case .boolean(true)?: if !Self.timed.contains(name) { add(DirectiveMember(name, nil)) }
            case .string(let text)? where name == "no-cache": noCacheFields = HeaderFields.names(in: text)
            case .string(let text)? where name == "private": privateFields = HeaderFields.names(in: text)
            default: break
            }
        }
    }

    /// The directives of responses whose value is a time.
    private static let timed: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    private mutating func add(_ member: DirectiveMember) {
        switch member.name {
        case "max-age": maxAge = member.seconds
        case "s-maxage": sharedMaxAge = member.seconds
        case "max-stale": maxStale = member.value == nil ? Self.unlimited : member.seconds
        case "min-fresh": minFresh = member.validSeconds ?? Self.unlimited
        case "stale-while-revalidate": staleWhileRevalidate = member.seconds
        case "stale-if-error": staleIfError = member.seconds
        case "no-store": noStore = true
        case "only-if-cached": onlyIfCached = true
        case "no-transform": noTransform = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "public": isPublic = true
        case "immutable": isImmutable = true
        default: others.append(member.text)
        }
    }
}

extension CacheControl: CustomStringConvertible {
    /// The value of the field; empty without directives.
    public var description: String {
        var parts: [String] = []
        func add(_ name: String, if isSet: Bool) { if isSet { parts.append(name) } }
        func add(_ name: String, _ time: Duration?) {
            if let time { parts.append("\(name)=\(Self.seconds(of: time))") }
        }
        func add(_ name: String, _ fields: [HeaderName]) {
            let names = fields.map(\.rawValue).joined(separator: ", ")
            if !fields.isEmpty { parts.append("\(name)=\"\(names)\"") }
        }
        add("public", if: isPublic)
        add("private", if: isPrivate)
        add("private", privateFields)
        add("no-cache", if: noCache)
        add("no-cache", noCacheFields)
        add("no-store", if: noStore)
        add("max-age", maxAge)
        add("s-maxage", sharedMaxAge)
        if let maxStale, maxStale >= Self.unlimited { parts.append("max-stale") } else { add("max-stale", maxStale) }
        add("min-fresh", minFresh)
        add("only-if-cached", if: onlyIfCached)
        add("no-transform", if: noTransform)
        add("must-revalidate", if: mustRevalidate)
        add("proxy-revalidate", if: proxyRevalidate)
        add("must-understand", if: mustUnderstand)
        add("immutable", if: isImmutable)
        add("stale-while-revalidate", staleWhileRevalidate)
        add("stale-if-error", staleIfError)
        return (parts + others).joined(separator: ", ")
    }

    /// Returns a time as `delta-seconds` (RFC 9111 §1.2.2), rounded towards zero.
    private static func seconds(of time: Duration) -> Int64 { min(max(time.components.seconds, 0), Int64(1) << 31) }
}

extension ResponseHead {
    /// The directives of the `Cache-Control` fields; empty without such a field.
    public var cacheControl: CacheControl { self[.cacheControl].map { CacheControl($0) } ?? CacheControl() }
}

/// A member of a list of directives: a token with an optional value (RFC 9111 §5.2).
private struct DirectiveMember {
    /// The name in lower case.
    let name: String
    /// The value without its quotes; nil without "=".
    let value: String?
    /// The member as it was received.
    let text: String

    /// The value as `delta-seconds`; zero, which no freshness survives, for an invalid value.
    var seconds: Duration { validSeconds ?? .zero }

    /// The value as `delta-seconds`, at most ``CacheControl/unlimited`` (RFC 9111 §1.2.2); nil for an invalid value.
    var validSeconds: Duration? {
        guard let value, !value.isEmpty, ByteSet.digits.containsAll(of: value) else { return nil }
        guard let number = Int64(value) else { return CacheControl.unlimited }
        return min(.seconds(number), CacheControl.unlimited)
    }

    /// Adds the field names of the value to a list; without names, the directive is about the whole response.
    func add(to fields: inout [HeaderName], or isWhole: inout Bool) {
        let names = HeaderFields.names(in: value ?? "")
        fields += names.filter { !fields.contains($0) }
        if names.isEmpty { isWhole = true }
    }

    init(_ name: String, _ value: String?) {
        self.name = name
        self.value = value
        text = name
    }

    /// Returns the members of a list; a member without a token as its name is skipped.
    static func all(in text: String) -> [DirectiveMember] {
        var members: [DirectiveMember] = []
        let bytes = text.utf8
        var start = bytes.startIndex
        while start < bytes.endIndex {
            let end = memberEnd(in: bytes, from: start)
            if let member = DirectiveMember(bytes[start..<end]) { members.append(member) }
            start = end == bytes.endIndex ? end : bytes.index(after: end)
        }
        return members
    }

    /// Returns the position of the next comma outside of quotes.
    private static func memberEnd(in bytes: String.UTF8View, from start: String.Index) -> String.Index {
        var (position, isQuoted) = (start, false)
        while position < bytes.endIndex {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
            if byte == UInt8(ascii: ","), !isQuoted { return position }
            position = bytes.index(after: position)
            if isQuoted, byte == UInt8(ascii: "\\"), position < bytes.endIndex {
                position = bytes.index(after: position)
            }
        }
        return position
    }

    private init?(_ bytes: Substring.UTF8View) {
        let member = bytes.trimmingLinearSpace
        let name = member.prefix { $0 != UInt8(ascii: "=") }
        let text = name.trimmingLinearSpace.map(\.asciiLowercased)
        guard !text.isEmpty, text.allSatisfy(ByteSet.token.contains) else { return nil }
        self.name = String(decoding: text, as: UTF8.self)
        self.text = String(Substring(member))
        value =
            name.endIndex == member.endIndex
            ? nil : Self.unquoted(member[name.endIndex...].dropFirst().trimmingLinearSpace)
    }

    /// Returns a value without its quotes and backslashes (RFC 9110 §5.6.4); an unquoted value unchanged.
    private static func unquoted(_ value: Substring.UTF8View) -> String {
        guard value.first == UInt8(ascii: "\"") else { return String(Substring(value)) }
        var (result, isEscaped) = ([UInt8](), false)
        for byte in value.dropFirst() {
            if !isEscaped, byte == UInt8(ascii: "\"") { break }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            if !isEscaped { result.append(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension Substring.UTF8View {
    fileprivate var trimmingLinearSpace: Substring.UTF8View {
        var bytes = self
        while let first = bytes.first, first.isLinearSpace { bytes.removeFirst() }
        while let last = bytes.last, last.isLinearSpace { bytes.removeLast() }
        return bytes
    }
}
