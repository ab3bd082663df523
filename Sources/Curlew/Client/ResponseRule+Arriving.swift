// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
internal import FoundationEssentials

extension ResponseRule {
    /// The time limit for reading the body of a refused response.
    private static let refusalTimeout = Duration.seconds(1)

    /// Checks the head of a response whose body is still arriving.
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - reader: The reader of its body, of which a refusal reads the start.
    ///   - run: The run of the reader.
    /// - Throws: The refusal of an unacceptable response, with the start of its body.
    nonisolated(nonsending) func check(
        _ head: ResponseHead, startingWith reader: BodyReader, of run: TransferRun
    ) async throws(NetworkError) {
        guard refusal(of: head, startingWith: nil) != nil else { return }
        let (body, error) = await start(of: reader, of: run)
        if Task.isCancelled, let error { throw error }
        // An empty body after an error is unknown, not empty.
        let isUnknown = error != nil && body.isEmpty
        if let refusal = refusal(of: head, startingWith: isUnknown ? nil : body) { throw refusal }
    }

    /// Returns the start of a refused response's body, and the error that ended the read.
    ///
    /// The method reads up to `NetworkError.errorBodyLimit` bytes for at most `refusalTimeout`.
    private nonisolated(nonsending) func start(
        of reader: BodyReader, of run: TransferRun
    ) async -> (Data, NetworkError?) {
        let timeout = Task {
            try await run.session.clock.wait(for: Self.refusalTimeout)
            run.cancel()
        }
        defer { timeout.cancel() }
        var body = Data()
        do throws(NetworkError) {
            while body.count < NetworkError.errorBodyLimit, let element = try await reader.nextElement() {
                if case .bytes(let chunk) = element { body.append(contentsOf: chunk) }
            }
        } catch {
            return (body, error)
        }
        return (body, nil)
    }

    /// Returns the output of a serializer that reads the body while it arrives.
    ///
    /// - Parameters:
    ///   - serializer: A serializer that is bound to a format.
    ///   - lifetime: The transfer, which ends with this call.
    func arrivingOutput<S: ResponseSerializer>(
        of serializer: S, from lifetime: TransferLifetime
    ) async throws(NetworkError) -> S.Output {
        let reader = BodyReader(lifetime, withProgress: false)
        while let element = try await reader.nextElement() {
            guard case .head(let head) = element else { continue }
            try await check(head, startingWith: reader, of: lifetime.run)
            let response = IncomingResponse(head, IncomingBody(reader, carrier: nil), request, nil)
            do {
                return try await serializer.output(from: response)
            } catch {
                let failure = NetworkError.decoding(error, as: S.Output.self, of: head, body: Data(), request: request)
                throw head.tries?.completing(failure) ?? failure
            }
        }
        throw NetworkError(.internal, phase: .receiving, "The transfer ended without a head.", request: request)
    }
}
