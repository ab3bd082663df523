// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The hosts that something holds for: one by its name, or all below a domain.
///
/// `api.example.com` is that host alone. `*.example.com` are the hosts one label below it, as in certificates.
/// `**.example.com` is the domain itself and everything below. International names may be written as they are.
public struct HostPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private enum Scope: Hashable {
        case host, children, all
    }

    private let scope: Scope
    /// In normal form; nil when it is no host.
    private let name: String?
    /// The pattern as it was given.
    public let description: String

    /// Takes a pattern; one that is none matches nothing, and those who are given it say so.
    public init(_ pattern: String) {
        description = pattern
        var rest = Substring(pattern)
        if rest.hasPrefix("**.") {
            (scope, rest) = (.all, rest.dropFirst(3))
        } else if rest.hasPrefix("*.") {
            (scope, rest) = (.children, rest.dropFirst(2))
        } else {
            scope = .host
        }
        name = HostPattern.normal(rest, isWhole: scope == .host)
    }

    /// Takes a pattern as a literal.
    public init(stringLiteral value: String) { self.init(value) }

    /// Whether a host is meant.
    ///
    /// - Parameter host: An A-label in lower case, perhaps with a dot at its end, or an IP address.
    public func matches(_ host: String) -> Bool {
        guard let name else { return false }
        let host = host.hasSuffix(".") ? host.dropLast() : Substring(host)
        switch scope {
        case .host: return host == name
        case .all where host == name: return true
        case .all: return host.hasSuffix(".\(name)") && host.count > name.count + 1
        case .children:
            guard host.hasSuffix(".\(name)") else { return false }
            let label = host.dropLast(name.count + 1)
            return !label.isEmpty && !label.contains(".")
        }
    }

    /// What is asked first where several patterns match: hosts, then the longer domain, then the narrower scope.
    var rank: (Int, Int) {
        switch scope {
        case .host: (.max, 2)
        case .children: (name?.utf8.count ?? 0, 1)
        case .all: (name?.utf8.count ?? 0, 0)
        }
    }

    func validate() throws(InvalidTrust) {
        guard name == nil else { return }
        throw InvalidTrust(
            "“\(description.escapingControls)” is no host.",
            hint: "Write a name, an IP address, “*.” or “**.” and a domain; no scheme, port or path.")
    }

    private static func normal(_ text: Substring, isWhole: Bool) -> String? {
        !isWhole && HostName.isAddress(String(text)) ? nil : HostName.key(text)
    }

    /// Whether both are written the same.
    public static func == (one: HostPattern, other: HostPattern) -> Bool { one.description == other.description }

    /// Hashes the text.
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }

    /// The pattern in normal form.
    var normal: HostPattern {
        let prefix = scope == .host ? "" : scope == .children ? "*." : "**."
        return name.map { HostPattern(prefix + $0) } ?? self
    }
}

/// Values for hosts, found by the pattern that fits best.
struct HostTable<Value: Hashable & Sendable>: Hashable, Sendable {
    private struct Row: Hashable, Sendable {
        var pattern: HostPattern
        var value: Value
    }

    private let rows: [Row]

    init(_ entries: [HostPattern: Value]) throws(InvalidTrust) {
        for pattern in entries.keys { try pattern.validate() }
        let normal = Dictionary(grouping: entries.keys, by: \.normal)
        if let twice = normal.values.first(where: { $0.count > 1 }) {
            throw InvalidTrust("“\(twice[0])” and “\(twice[1])” mean the same hosts.")
        }
        rows = entries.map { Row(pattern: $0.normal, value: $1) }.sorted {
            $0.pattern.rank != $1.pattern.rank
                ? $0.pattern.rank > $1.pattern.rank : $0.pattern.description < $1.pattern.description
        }
    }

    subscript(host: String) -> Value? { rows.first { $0.pattern.matches(host) }?.value }

    var values: [Value] { rows.map(\.value) }
}
