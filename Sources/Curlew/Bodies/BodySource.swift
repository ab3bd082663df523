// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// One kind of body content.
///
/// A new kind is a type that conforms, and a factory of ``RequestBody``; no other file changes.
protocol BodySource: Sendable {
    /// The number of bytes; nil when it is unknown before the body ends, or before a file is opened.
    var length: Int64? { get }
    /// Whether the same bytes can be sent a second time.
    var canReplay: Bool { get }
    /// Whether the source can be read only once, and reading has begun.
    var isConsumed: Bool { get }
    /// The bytes of a source in memory; nil for every other source.
    var bytes: [UInt8]? { get }
    /// Whether the source is a file that does not exist.
    var isMissing: Bool { get }
    /// The reason why the source cannot be sent; nil for a source that can.
    var flaw: JoinedBody.Flaw? { get }
    /// The source as a shell command reads it.
    var shellInput: ShellInput { get }
    /// Whether the source refers to a descriptor that the caller owns.
    var needsOwnDescriptor: Bool { get }

    /// Opens the source as one piece of a body.
    /// - Throws: `SourceFailure` when a file or descriptor cannot be read.
    func open() throws(SourceFailure) -> BodyPiece
    /// Opens the source as a whole body.
    /// - Throws: `SourceFailure` when a file or descriptor cannot be read.
    func upload() throws(SourceFailure) -> TransferPlan.Upload
    /// Returns the number of bytes, or nil when it is unknown before the end; queries a file for its size.
    /// - Throws: `SourceFailure` when a file or descriptor cannot be read.
    func measuredLength() throws(SourceFailure) -> Int64?
    /// Returns the source with a duplicated descriptor, for a request that is sent later, or sent again before it was
    /// read.
    /// - Throws: `SourceFailure` when the descriptor is not open for reading.
    func withOwnDescriptor() throws(SourceFailure) -> any BodySource
    /// Returns the source without its duplicated descriptor, for errors, which may outlive the transfer by far.
    func withoutDescriptor() -> any BodySource
}

/// A body in a shell command.
enum ShellInput {
    case bytes([UInt8])
    case file(String)
    /// Standard input, and whether its length is declared.
    case standardInput(isLengthKnown: Bool)
    /// Several inputs, one after the other, and the number of their bytes if it is known.
    case sequence([ShellInput], length: Int64?)
}

extension BodySource {
    var isConsumed: Bool { false }
    var bytes: [UInt8]? { nil }
    var isMissing: Bool { false }
    var flaw: JoinedBody.Flaw? { nil }
    var needsOwnDescriptor: Bool { false }

    func upload() throws(SourceFailure) -> TransferPlan.Upload { try open().upload() }
    func measuredLength() throws(SourceFailure) -> Int64? { length }
    func withOwnDescriptor() throws(SourceFailure) -> any BodySource { self }
    func withoutDescriptor() -> any BodySource { self }
}

/// Bytes in memory.
struct BytesBody: BodySource {
    let content: [UInt8]

    var length: Int64? { Int64(content.count) }
    var canReplay: Bool { true }
    var bytes: [UInt8]? { content }
    var shellInput: ShellInput { .bytes(content) }

    func open() -> BodyPiece { BodyPiece(.bytes(content)) }
}
