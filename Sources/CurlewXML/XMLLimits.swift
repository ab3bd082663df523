// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// The limits beyond which the parser refuses a document; a document cannot raise them.
///
/// ```swift
/// var limits = XMLLimits()
/// limits.depth = 32
/// let feed = XMLEvents(limits: limits)
/// ```
public struct XMLLimits: Sendable, Hashable {
    /// The maximum nesting depth of elements; 256 by default, and at most 256.
    public var depth = 256 {
        didSet { depth = min(max(depth, 1), 256) }
    }
    /// The maximum number of attributes and namespace declarations of an element; 256 by default, and at most 256.
    public var attributes = 256 {
        didSet { attributes = min(max(attributes, 1), 256) }
    }
    /// The maximum length of a prefix and of the name of an element or attribute; 1 KiB by default.
    public var name = ByteCount.kibibytes(1)
    /// The maximum length of a tag, comment, processing instruction or document type declaration; 1 MiB by default.
    ///
    /// The value is at most 9 MiB.
    public var markup = ByteCount.mebibytes(1) {
        didSet { markup = min(max(markup, .bytes(1)), .mebibytes(9)) }
    }
    /// The maximum length of the text in one event; 64 KiB by default, and at least 16 bytes.
    ///
    /// Longer text is split into several events.
    public var textPiece = ByteCount.kibibytes(64) {
        didSet { textPiece = max(textPiece, .bytes(16)) }
    }
    /// The maximum length of an ``XMLDocument`` or ``HTMLDocument``, counted in UTF-8; 64 MiB by default.
    ///
    /// Events do not have this limit. A single text, CDATA section or script of a document has at most 10 MB; events
    /// split longer ones.
    public var document = ByteCount.defaultBodyLimit
    /// The maximum number of elements, attributes, texts and other nodes of a document; a million by default.
    ///
    /// Each node takes about a hundred bytes of memory in addition to its content.
    public var nodes = 1_000_000

    /// Creates the default limits.
    public init() {}
}
