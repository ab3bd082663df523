// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// What a document may ask for before it is refused; no document can raise it.
///
/// ```swift
/// var limits = XMLLimits()
/// limits.depth = 32
/// let feed = XMLEvents(limits: limits)
/// ```
public struct XMLLimits: Sendable, Hashable {
    /// How deep elements may be nested; 256 unless given, and never more.
    public var depth = 256 {
        didSet { depth = min(max(depth, 1), 256) }
    }
    /// How many attributes and namespace declarations an element may have; 256 unless given, and never more.
    public var attributes = 256 {
        didSet { attributes = min(max(attributes, 1), 256) }
    }
    /// The longest name of an element or attribute, and the longest prefix; 1 KiB unless given.
    public var name = ByteCount.kibibytes(1)
    /// The longest tag, comment, processing instruction or document type declaration; 1 MiB unless given.
    ///
    /// It is never more than 9 MiB.
    public var markup = ByteCount.mebibytes(1) {
        didSet { markup = min(max(markup, .bytes(1)), .mebibytes(9)) }
    }
    /// The longest piece in which text is given as events, longer text comes in several; 64 KiB unless given, and never
    /// less than 16 bytes.
    public var textPiece = ByteCount.kibibytes(64) {
        didSet { textPiece = max(textPiece, .bytes(16)) }
    }
    /// The longest document that is kept as a whole, counted in UTF-8; 64 MiB unless given.
    ///
    /// Events have no such limit. One text or CDATA section of a document that is kept has no more than 10 MB; events give
    /// longer ones in pieces.
    public var document = ByteCount.mebibytes(64)
    /// How many elements, attributes, texts and the like a document that is kept may have; a million unless given.
    ///
    /// Each takes about a hundred bytes of memory beside what it says.
    public var nodes = 1_000_000

    /// The limits named above.
    public init() {}
}
