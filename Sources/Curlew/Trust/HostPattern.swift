// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension HostTrust {
    /// A pattern of hosts: a single host, or the hosts below a domain.
    ///
    /// `api.example.com` matches that host only. `*.example.com` matches the hosts one label below the domain, as in
    /// certificates. `**.example.com` matches the domain and all hosts below it. Internationalized names can be in
    /// Unicode.
    public struct Pattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
        private enum Scope: Hashable {
            case host, children, all
        }

        private let scope: Scope
        /// The name in normal form; nil when it is not a valid host.
        private let name: String?
        /// The pattern as given to the initializer.
        public let description: String

        /// Creates a pattern.
        ///
        /// An invalid pattern matches nothing; types that accept patterns report it.
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
            name = HostTrust.Pattern.normal(rest, isWhole: scope == .host)
        }

        /// Creates a pattern from a string literal.
        public init(stringLiteral value: String) { self.init(value) }

        /// Returns whether the pattern matches a host.
        ///
        /// - Parameter host: An A-label in lower case, possibly with a trailing dot, or an IP address.
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

        /// The precedence where several patterns match: hosts first, then the longer domain, then the narrower scope.
        var rank: (Int, Int) {
            switch scope {
            case .host: (.max, 2)
            case .children: (name?.utf8.count ?? 0, 1)
            case .all: (name?.utf8.count ?? 0, 0)
            }
        }

        func validate() throws(TrustFailure.InvalidPolicy) {
            guard name == nil else { return }
            throw TrustFailure.InvalidPolicy(
                "“\(description.escapingControls)” is not a host.",
                hint: "Use a host name, an IP address, or “*.” or “**.” and a domain, without scheme, port or path.")
        }

        private static func normal(_ text: Substring, isWhole: Bool) -> String? {
            !isWhole && HostName.isAddress(String(text)) ? nil : HostName.key(text)
        }

        /// Whether both have the same text.
        public static func == (one: HostTrust.Pattern, other: HostTrust.Pattern) -> Bool {
            one.description == other.description
        }

        /// Hashes the text.
        public func hash(into hasher: inout Hasher) { hasher.combine(description) }

        /// The pattern in normal form.
        var normal: HostTrust.Pattern {
            let prefix = scope == .host ? "" : scope == .children ? "*." : "**."
            return name.map { HostTrust.Pattern(prefix + $0) } ?? self
        }
    }
}

/// A table of values by host pattern; a look-up returns the value of the best matching pattern.
struct HostTable<Value: Hashable & Sendable>: Hashable, Sendable {
    private struct Row: Hashable, Sendable {
        var pattern: HostTrust.Pattern
        var value: Value
    }

    private let rows: [Row]

    init(_ entries: [HostTrust.Pattern: Value]) throws(TrustFailure.InvalidPolicy) {
        for pattern in entries.keys { try pattern.validate() }
        let normal = Dictionary(grouping: entries.keys, by: \.normal)
        if let twice = normal.values.first(where: { $0.count > 1 }) {
            throw TrustFailure.InvalidPolicy("“\(twice[0])” and “\(twice[1])” mean the same hosts.")
        }
        rows = entries.map { Row(pattern: $0.normal, value: $1) }.sorted {
            $0.pattern.rank != $1.pattern.rank
                ? $0.pattern.rank > $1.pattern.rank : $0.pattern.description < $1.pattern.description
        }
    }

    subscript(host: String) -> Value? { rows.first { $0.pattern.matches(host) }?.value }

    var values: [Value] { rows.map(\.value) }
}
