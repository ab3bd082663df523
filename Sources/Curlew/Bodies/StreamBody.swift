// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A producer of chunks, which starts when the body is sent.
struct StreamBody: BodySource {
    let length: Int64?
    let canReplay: Bool
    /// Records whether the stream was read; shared by all copies of a body that can be read only once, otherwise nil.
    let use: SourceUse?
    /// Starts the producer, which pushes into the given feed; the returned closure stops it.
    let start: @Sendable (UploadPipe.Feed) -> @Sendable () -> Void

    var isConsumed: Bool { use?.isConsumed == true }
    var shellInput: ShellInput { .standardInput(isLengthKnown: length != nil) }

    func open() -> BodyPiece { BodyPiece(.producer(length: length, open: start), canReplay: canReplay, use: use) }
}
