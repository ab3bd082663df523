// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The name of an element or an attribute, with its namespace (Namespaces in XML 1.0).
///
/// Names are equal if their local names and namespaces are equal, regardless of their prefixes.
///
/// ```swift
/// if tag.name == XMLName("entry", namespace: "http://www.w3.org/2005/Atom") { entries += 1 }
/// ```
public struct XMLName: Sendable, Hashable, CustomStringConvertible {
    /// One shared object for the parts, because events carry many equal names.
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

    /// Creates a name, for comparisons with other names.
    ///
    /// - Parameters:
    ///   - local: The name without its prefix.
    ///   - prefix: The prefix, which comparisons ignore.
    ///   - namespace: The URI of the namespace; nil for a name without a namespace.
    public init(_ local: String, prefix: String? = nil, namespace: String? = nil) {
        parts = Parts(local, prefix, namespace)
    }

    /// The name without its prefix.
    public var local: String { parts.local }
    /// The prefix in the document; nil for a name without a prefix.
    public var prefix: String? { parts.prefix }
    /// The URI of the namespace; nil for a name without a namespace.
    public var namespace: String? { parts.namespace }
    /// The name with its prefix as in the document, such as `atom:entry`.
    public var qualified: String { prefix.map { "\($0):\(local)" } ?? local }

    /// Returns whether local names and namespaces are equal.
    public static func == (one: XMLName, other: XMLName) -> Bool {
        one.parts === other.parts || (one.local == other.local && one.namespace == other.namespace)
    }

    /// Hashes the local name and the namespace.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(local)
        hasher.combine(namespace)
    }

    /// The name with its prefix as in the document.
    public var description: String { qualified }
}

/// An attribute of an element.
public struct XMLAttribute: Sendable, Hashable {
    /// The name; without a prefix it has no namespace (Namespaces in XML 1.0 §6.2).
    public let name: XMLName
    /// The value, normalised and with references expanded (XML 1.0 §3.3.3).
    public let value: String

    /// Creates an attribute.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The unescaped value.
    public init(_ name: XMLName, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A namespace that an element declares.
public struct XMLNamespace: Sendable, Hashable {
    /// The prefix of the namespace; nil for the default namespace.
    public let prefix: String?
    /// The URI of the namespace; empty if the declaration removes the default namespace.
    public let uri: String

    /// Creates a declaration.
    ///
    /// - Parameters:
    ///   - prefix: The prefix; nil for the default namespace.
    ///   - uri: The URI.
    public init(prefix: String?, uri: String) {
        self.prefix = prefix
        self.uri = uri
    }
}
