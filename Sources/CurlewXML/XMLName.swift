// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The name of an element or an attribute, with the namespace it is in (Namespaces in XML 1.0).
///
/// Names are equal when their local names and namespaces are, whatever their prefixes.
///
/// ```swift
/// if tag.name == XMLName("entry", namespace: "http://www.w3.org/2005/Atom") { entries += 1 }
/// ```
public struct XMLName: Sendable, Hashable, CustomStringConvertible {
    /// In one piece: events carry many names, of which few differ.
    private final class Parts: Sendable {
        let local: String
        let prefix: String?
        let namespace: String?

        init(_ local: String, _ prefix: String?, _ namespace: String?) {
            self.local = local
            self.prefix = prefix
            self.namespace = namespace
        }
    }

    private let parts: Parts

    /// Makes a name, to compare others with.
    ///
    /// - Parameters:
    ///   - local: What stands after the prefix.
    ///   - prefix: The prefix, which does not matter when names are compared.
    ///   - namespace: The URI of the namespace; nil for names in none.
    public init(_ local: String, prefix: String? = nil, namespace: String? = nil) {
        parts = Parts(local, prefix, namespace)
    }

    /// The name without its prefix.
    public var local: String { parts.local }
    /// The prefix it was written with; nil without one.
    public var prefix: String? { parts.prefix }
    /// The URI of its namespace; nil when it is in none.
    public var namespace: String? { parts.namespace }
    /// The name as it was written, such as `atom:entry`.
    public var qualified: String { prefix.map { "\($0):\(local)" } ?? local }

    /// Whether local names and namespaces are the same.
    public static func == (one: XMLName, other: XMLName) -> Bool {
        one.parts === other.parts || (one.local == other.local && one.namespace == other.namespace)
    }

    /// Hashes local name and namespace.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(local)
        hasher.combine(namespace)
    }

    /// The name as it was written.
    public var description: String { qualified }
}

/// An attribute of an element.
public struct XMLAttribute: Sendable, Hashable {
    /// Its name; without a prefix it is in no namespace (Namespaces in XML 1.0 §6.2).
    public let name: XMLName
    /// Its value, normalised and with references expanded (XML 1.0 §3.3.3).
    public let value: String

    /// Makes an attribute.
    ///
    /// - Parameters:
    ///   - name: Its name.
    ///   - value: Its value, as it is meant and not as it is written.
    public init(_ name: XMLName, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A namespace that an element declares.
public struct XMLNamespace: Sendable, Hashable {
    /// The prefix that stands for it; nil for the namespace of names without a prefix.
    public let prefix: String?
    /// Its URI; empty where the namespace of names without a prefix is taken back.
    public let uri: String

    /// Makes a declaration.
    ///
    /// - Parameters:
    ///   - prefix: The prefix; nil for names without one.
    ///   - uri: The URI.
    public init(prefix: String?, uri: String) {
        self.prefix = prefix
        self.uri = uri
    }
}
