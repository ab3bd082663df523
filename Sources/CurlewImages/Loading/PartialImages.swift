// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport
internal import FoundationEssentials

/// The received parts of images whose transfers failed, in memory.
///
/// A part is kept if the response had a strong validator and a known length, and no content coding. Above the limit,
/// the oldest parts are removed.
final class PartialImages: Sendable {
    /// The start of an image.
    struct Part: Sendable {
        let bytes: Data
        let validator: ResumeToken.Validator
        let total: Int64

        /// The request for the rest.
        var request: RangeRequest { RangeRequest(offset: Int64(bytes.count), validator: validator, total: total) }
    }

    private struct State {
        var parts: [(id: UInt64, key: ImageLoader.SharedKey, part: Part)] = []
        var bytes = 0
        var lastID: UInt64 = 0
    }

    /// The maximum number of bytes of all parts.
    let limit: Int
    private let state = Lock(State())

    init(limit: ByteCount) { self.limit = Int(clamping: max(limit.bytes, 0)) }

    /// The number of bytes of all parts.
    var bytes: Int { state.withLock { $0.bytes } }

    /// Removes and returns the part of an image.
    func take(_ key: ImageLoader.SharedKey) -> Part? {
        // Keys have values of the user, so they are compared without the lock.
        let known = state.withLock { $0.parts }
        guard let id = known.last(where: { $0.key == key })?.id else { return nil }
        return state.withLock { state in
            guard let position = state.parts.firstIndex(where: { $0.id == id }) else { return nil }
            let part = state.parts.remove(at: position).part
            state.bytes -= part.bytes.count
            return part
        }
    }

    /// Keeps the part of an image, and removes the oldest ones above the limit.
    func keep(_ part: Part, for key: ImageLoader.SharedKey) {
        guard !part.bytes.isEmpty, part.bytes.count <= limit else { return }
        state.withLock { state in
            state.lastID += 1
            state.parts.append((state.lastID, key, part))
            state.bytes += part.bytes.count
            while state.bytes > limit { state.bytes -= state.parts.removeFirst().part.bytes.count }
        }
    }
}

/// The received bytes of a transfer that a later transfer can continue.
final class ReceivedPart: Sendable {
    private struct State {
        var bytes = Data()
        var validator: ResumeToken.Validator?
        var total: Int64?
    }

    private let limit: Int
    private let state: Lock<State>

    /// Creates the part of a transfer.
    ///
    /// - Parameters:
    ///   - part: The stored part that the transfer continues.
    ///   - limit: The maximum number of bytes to keep.
    init(_ part: PartialImages.Part?, limit: Int) {
        self.limit = limit
        state = Lock(State(bytes: part?.bytes ?? Data(), validator: part?.validator, total: part?.total))
    }

    /// The bytes so far: the stored part, then those of the transfer.
    var bytes: Data { state.withLock { $0.bytes } }

    /// The part to keep; nil if a later transfer cannot continue it.
    var part: PartialImages.Part? {
        state.withLock { state in
            guard let validator = state.validator, let total = state.total, !state.bytes.isEmpty else { return nil }
            return PartialImages.Part(bytes: state.bytes, validator: validator, total: total)
        }
    }

    /// Begins with the head of a whole response.
    func begin(_ head: ResponseHead) {
        let length = head.contentLength.flatMap { $0 <= limit ? $0 : nil }
        let refusesRanges = head[.acceptRanges]?.lowercased() == "none"
        let isContinuable = head.status == .ok && head.cache?.isHit != true && !refusesRanges
        let validator = isContinuable && length != nil ? ResumeToken.Validator(head) : nil
        state.withLock { $0 = State(validator: validator, total: length) }
    }

    /// Adds bytes, unless the part will not be kept.
    func append(_ chunk: ByteChunk) {
        state.withLock { state in
            guard state.validator != nil else { return }
            state.bytes.append(contentsOf: chunk)
        }
    }
}
