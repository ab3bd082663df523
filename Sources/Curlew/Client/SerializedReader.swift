// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Reads a transfer's body through a serializer, after its head was found acceptable.
struct SerializedReader<Serializer: StreamSerializer>: StreamReader {
    /// How long it waits for what a refused response says.
    private static var patience: Duration { .seconds(1) }

    private let token: TransferToken
    private let reader: TransferReader
    private let serializer: Serializer
    private let rule: ResponseRule
    private var head: ResponseHead?
    private var kept: Serializer.State?
    private var end: Result<Void, NetworkError>?

    init(_ token: TransferToken, _ serializer: Serializer, _ rule: ResponseRule) {
        self.token = token
        reader = TransferReader(token, withProgress: false)
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
            // Its place on the wire is for others, also while somebody keeps the iterator; but a reader who came second, and
            // so saw no head, leaves it to the first.
            if head != nil { token.run.cancel() }
            throw error
        }
    }

    private nonisolated(nonsending) mutating func read(
        _ elements: inout [Serializer.Element]
    ) async throws(NetworkError) {
        switch try await reader.next() {
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
        if rule.refusal(of: head, startingWith: nil) != nil {
            let (body, error) = await start()
            if Task.isCancelled, let error { throw error }
            // What has not come yet may be anything, and not nothing.
            let isUnknown = error != nil && body.isEmpty
            if let refusal = rule.refusal(of: head, startingWith: isUnknown ? nil : body) { throw refusal }
        }
        do { kept = try serializer.begin(head) } catch { throw failure(error, in: nil) }
    }

    /// The start of the body of a response that was refused, as much as an error keeps and as comes soon; and why there is
    /// no more.
    private nonisolated(nonsending) func start() async -> (Data, NetworkError?) {
        let run = token.run
        let patience = Task {
            try await ContinuousClock().wait(for: Self.patience)
            run.cancel()
        }
        defer { patience.cancel() }
        var body = Data()
        do throws(NetworkError) {
            while body.count < NetworkError.answerLimit, let element = try await reader.next() {
                if case .bytes(let chunk) = element { body.append(contentsOf: chunk) }
            }
        } catch {
            return (body, error)
        }
        return (body, nil)
    }

    /// A failure comes after the elements before it.
    private mutating func decode(_ chunk: ByteChunk?, _ elements: inout [Serializer.Element]) {
        guard var state = kept else { return }
        // Changed in place where it is not shared.
        kept = nil
        defer { kept = state }
        do {
            try serializer.decode(chunk, &state, into: &elements)
            if chunk != nil, serializer.isOver(state) { finish() }
        } catch {
            end = .failure(failure(error, in: chunk))
        }
        elements.reverse()
    }

    /// Ends the stream before the body has ended.
    private mutating func finish() {
        end = .success(())
        token.run.cancel()
    }

    private func failure(_ error: any Error, in chunk: ByteChunk?) -> NetworkError {
        .decoding(
            error, as: Serializer.Element.self, of: head, body: chunk.map { Data($0) } ?? Data(), request: rule.request)
    }
}
