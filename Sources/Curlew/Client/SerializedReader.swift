// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A reader that decodes a transfer's body with a serializer after it has accepted the head.
struct SerializedReader<Serializer: StreamSerializer>: StreamReader {
    private let run: TransferRun
    private let reader: BodyReader
    private let serializer: Serializer
    private let rule: ResponseRule
    private var head: ResponseHead?
    private var decoderState: Serializer.State?
    private var end: Result<Void, NetworkError>?

    init(_ lifetime: TransferLifetime, _ serializer: Serializer, _ rule: ResponseRule) {
        run = lifetime.run
        reader = BodyReader(lifetime, withProgress: false)
        self.serializer = serializer
        self.rule = rule
    }

    nonisolated(nonsending) mutating func fill(_ elements: inout [Serializer.Element]) async throws(NetworkError) {
        do throws(NetworkError) {
            while elements.isEmpty {
                if let end { return try end.get() }
                try await read(&elements)
            }
        } catch {
            end = .failure(error)
            // Release the connection even if the caller keeps the iterator. Do not cancel if this reader has received
            // no head: then another reader was first and owns the body.
            if head != nil { run.cancel() }
            throw error
        }
    }

    private nonisolated(nonsending) mutating func read(
        _ elements: inout [Serializer.Element]
    ) async throws(NetworkError) {
        switch try await reader.nextElement() {
        case .head(let head): try await begin(head)
        case .bytes(let chunk): decode(chunk, &elements)
        case .informational, .progress, .trailers: break
        case nil:
            decode(nil, &elements)
            if end == nil { end = .success(()) }
        }
    }

    private nonisolated(nonsending) mutating func begin(_ head: ResponseHead) async throws(NetworkError) {
        self.head = head
        try await rule.check(head, startingWith: reader, of: run)
        do { decoderState = try serializer.begin(head) } catch { throw failure(error, in: nil) }
    }

    /// Decodes a chunk; a failure is reported after the elements before it.
    private mutating func decode(_ chunk: ByteChunk?, _ elements: inout [Serializer.Element]) {
        guard var state = decoderState else { return }
        // Clearing `decoderState` makes the state uniquely referenced, so the decoder changes it without a copy.
        decoderState = nil
        defer { decoderState = state }
        do {
            try serializer.decode(chunk, &state, into: &elements)
            if chunk != nil, serializer.isOver(state) { finish() }
        } catch {
            end = .failure(failure(error, in: chunk))
        }
        elements.reverse()
    }

    /// Ends the stream before the end of the body.
    private mutating func finish() {
        end = .success(())
        run.cancel()
    }

    private func failure(_ error: any Error, in chunk: ByteChunk?) -> NetworkError {
        .decoding(
            error, as: Serializer.Element.self, of: head, body: chunk.map { Data($0) } ?? Data(), request: rule.request)
    }
}
