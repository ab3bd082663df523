// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Undoes the content codings of one body, a step at a time: wire bytes are fed, decoded ones come out.
///
/// Bounded whatever the ratio: a step takes and gives at most 64 KiB, and nothing is taken while something is left to
/// give. Used by one task at a time.
final class ContentDecoder {
    /// One coding, with the input it has not used yet.
    struct Stage {
        let coding: ContentCoding
        let codec: any Codec
        fileprivate var input = ByteChunk([])
        fileprivate var offset = 0
        /// The last step filled its output, so more may come without more input.
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

    /// What one step came to.
    enum Step {
        case bytes(ByteChunk)
        /// Nothing to give yet, and more to do.
        case working
        /// Nothing more to give without more input.
        case starved
    }

    /// Outermost first.
    private var stages: [Stage]
    /// Wire bytes taken so far.
    private(set) var fed: Int64 = 0
    /// Wire bytes used so far.
    var consumed: Int64 { fed - Int64((stages.first?.input.count ?? 0) - (stages.first?.offset ?? 0)) }
    /// Bytes given so far.
    private(set) var produced: Int64 = 0

    init(_ stages: [Stage]) { self.stages = stages }

    /// Takes the next wire bytes.
    /// - Precondition: The last step was `.starved`, or there was none.
    func feed(_ chunk: ByteChunk) {
        fed += Int64(chunk.count)
        stages[0].take(chunk)
    }

    /// Does a little: the innermost coding that can goes on.
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

    /// Checks that the body is complete; one without any bytes is, whatever its coding.
    /// - Throws: `NetworkError` of kind `truncatedEncoding` in phase `decoding`.
    func finish() throws(NetworkError) {
        guard fed > 0, let open = stages.first(where: { !$0.codec.isComplete }) else { return }
        throw NetworkError(
            .truncatedEncoding, phase: .decoding,
            "The body ended before its content coding “\(open.coding.rawValue)” did, after \(ByteCount(fed)).",
            hint: "What was decoded until then is not the whole; the sender or somebody between broke off.")
    }

    static func error(_ failure: CodecFailure, in coding: ContentCoding) -> NetworkError {
        switch failure {
        case .corrupt(let reason):
            NetworkError(
                .corruptEncoding, phase: .decoding,
                "The body is not what its content coding “\(coding.rawValue)” promises: \(reason.escapingControls).",
                hint: "Look at the bytes as they came, with options.decompression set to .off.")
        case .outOfMemory:
            NetworkError(
                .resourceExhausted, phase: .decoding,
                "There is no memory to decode the content coding “\(coding.rawValue)”.")
        }
    }
}
