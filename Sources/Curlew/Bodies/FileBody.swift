// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import Glibc

/// A regular file, which is opened when the body is sent.
struct FileBody: BodySource {
    let path: String

    var length: Int64? { nil }
    var canReplay: Bool { true }
    var shellInput: ShellInput { .file(path) }

    func open() -> BodyPiece { BodyPiece(.file(path)) }

    func measuredLength() throws(SourceFailure) -> Int64? { try upload().declaredLength }

    /// Whether no file has this path.
    var isMissing: Bool {
        !path.utf8.contains(0) && access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)
    }
}

/// A descriptor of the caller, which is duplicated when the body is opened.
struct DescriptorBody: BodySource {
    let descriptor: Int32
    let length: Int64?

    var canReplay: Bool { false }
    var shellInput: ShellInput { .standardInput(isLengthKnown: length != nil) }
    var needsOwnDescriptor: Bool { true }

    func open() throws(SourceFailure) -> BodyPiece {
        BodyPiece(.descriptor(try OwnedDescriptor(duplicating: descriptor), length: length), canReplay: false)
    }

    func measuredLength() throws(SourceFailure) -> Int64? {
        if let length { length } else { try upload().declaredLength }
    }

    func withOwnDescriptor() throws(SourceFailure) -> any BodySource {
        OwnedDescriptorBody(descriptor: try OwnedDescriptor(duplicating: descriptor), length: length, use: SourceUse())
    }
}

/// A duplicated descriptor, which lives as long as the body.
struct OwnedDescriptorBody: BodySource {
    let descriptor: OwnedDescriptor
    let length: Int64?
    let use: SourceUse

    var canReplay: Bool { false }
    var isConsumed: Bool { use.isConsumed }
    var shellInput: ShellInput { .standardInput(isLengthKnown: length != nil) }

    func open() -> BodyPiece { BodyPiece(.descriptor(descriptor, length: length), canReplay: false, use: use) }

    func measuredLength() throws(SourceFailure) -> Int64? {
        if let length { length } else { try upload().declaredLength }
    }

    func withoutDescriptor() -> any BodySource { DescriptorBody(descriptor: -1, length: length) }
}
