// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decodes the content codings of one body step by step: the caller feeds received bytes and gets decoded bytes.
///
/// Memory is bounded at every ratio: a step consumes and produces at most 64 KiB, and consumes no input while output is
/// left. One task at a time may use the decoder.
final class ContentDecoder {
    /// One coding with its unused input.
    struct Stage {
        let coding: ContentCoding
        let codec: any Codec
        fileprivate var input = ByteChunk([])
        fileprivate var offset = 0
        /// Whether the last step filled its output, so that more output can follow without more input.
        fileprivate var isFull = false

        init(_ coding: ContentCoding, _ codec: any Codec) {
            self.coding = coding
            self.codec = codec
        }

        fileprivate var hasWork: Bool { isFull || offset < input.count }

        fileprivate mutating func step() throws(CodecFailure) -> [UInt8] {
            let piece = try codec.decode(input, from: offset)
            offset += piece.consumed
            isFull = piece.isFull
            return piece.bytes
        }

        fileprivate mutating func take(_ chunk: ByteChunk) {
            input = chunk
            offset = 0
        }
    }

    /// The result of one step.
    enum Step {
        case bytes(ByteChunk)
        /// The step has no output, and more steps can follow.
        case working
        /// The decoder has no more output without more input.
        case starved
    }

    /// The stages, the outermost coding first.
    private var stages: [Stage]
    /// The number of received bytes that were fed so far.
    private(set) var fed: Int64 = 0
    /// The number of received bytes that were used so far.
    var consumed: Int64 { fed - Int64((stages.first?.input.count ?? 0) - (stages.first?.offset ?? 0)) }
    /// The number of decoded bytes so far.
    private(set) var produced: Int64 = 0

    init(_ stages: [Stage]) { self.stages = stages }

    /// Takes the next received bytes.
    /// - Precondition: The last step returned `.starved`, or no step has run.
    func feed(_ chunk: ByteChunk) {
        fed += Int64(chunk.count)
        stages[0].take(chunk)
    }

    /// Runs one step of the innermost coding that has work.
    /// - Throws: `NetworkError` of kind `corruptEncoding` or `resourceExhausted` in phase `decoding`.
    func step() throws(NetworkError) -> Step {
        guard let index = stages.lastIndex(where: \.hasWork) else { return .starved }
        let bytes: [UInt8]
        do throws(CodecFailure) {
            bytes = try stages[index].step()
        } catch {
            throw Self.error(error, in: stages[index].coding)
        }
        if bytes.isEmpty { return .working }
        guard index == stages.count - 1 else {
            stages[index + 1].take(ByteChunk(bytes))
            return .working
        }
        produced += Int64(bytes.count)
        return .bytes(ByteChunk(bytes))
    }

    /// Checks that the body is complete; an empty body is complete in every coding.
    /// - Throws: `NetworkError` of kind `truncatedEncoding` in phase `decoding`.
    func finish() throws(NetworkError) {
        guard fed > 0, let open = stages.first(where: { !$0.codec.isComplete }) else { return }
        throw NetworkError(
            .truncatedEncoding, phase: .decoding,
            "The body ended before its content coding “\(open.coding.rawValue)” did, after \(ByteCount(fed)).",
            hint: "The decoded bytes are incomplete; the server or an intermediary ended the body early.")
    }

    static func error(_ failure: CodecFailure, in coding: ContentCoding) -> NetworkError {
        switch failure {
        case .corrupt(let reason):
            NetworkError(
                .corruptEncoding, phase: .decoding,
                "The body is not valid in its content coding “\(coding.rawValue)”: \(reason.escapingControls).",
                hint: coding.needsDictionary
                    ? "Remove the dictionary from the cache, or do not set usesDictionaries."
                    : "Set options.decompression to .off to inspect the encoded bytes.")
        case .outOfMemory:
            NetworkError(
                .resourceExhausted, phase: .decoding,
                "There is not enough memory to decode the content coding “\(coding.rawValue)”.")
        }
    }
}
