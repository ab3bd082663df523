// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// A kind of note that a request carries for interceptors and observers, with the type of its value.
    ///
    /// ```swift
    /// enum Screen: Request.Tag { typealias Value = String }
    /// request.tags[Screen.self] = "checkout"
    /// ```
    public protocol Tag {
        /// The type of the note's value.
        associatedtype Value: Sendable
    }
}

extension Request {
    /// The notes that a request carries for interceptors, observers and its caller, at most one value for each
    /// `Request.Tag`.
    ///
    /// Tags stay with a request in every copy, so through redirects and interceptors, and are never sent. Descriptions
    /// list the names of the tags without their values.
    public struct Tags: Sendable {
        private struct Entry: Sendable {
            let name: String
            let value: any Sendable
        }

        private var entries: [ObjectIdentifier: Entry] = [:]

        /// Creates an empty set of tags.
        public init() {}

        /// The value of a tag, or nil when the request has no such tag; setting nil removes it.
        public subscript<Tag: Request.Tag>(tag: Tag.Type) -> Tag.Value? {
            get { entries[ObjectIdentifier(tag)]?.value as? Tag.Value }
            set { entries[ObjectIdentifier(tag)] = newValue.map { Entry(name: String(describing: tag), value: $0) } }
        }

        /// Whether there is no tag.
        public var isEmpty: Bool { entries.isEmpty }
    }
}

extension Request.Tags: CustomStringConvertible, CustomReflectable {
    /// The names of the tags' types, sorted, without their values: "[Attempt, Screen]".
    public var description: String { "[\(names.joined(separator: ", "))]" }

    /// The names alone.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: names, displayStyle: .set) }

    private var names: [String] { entries.values.map(\.name).sorted() }
}
