// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Interception {
    /// The rest of the chain behind an interceptor: further interceptors, and the network at the end.
    ///
    /// An interceptor can call it any number of times, also concurrently; each call sends the request again.
    ///
    /// ```swift
    /// let response = try await next(request)
    /// guard response.head.status == .unauthorized else { return response }
    /// await response.discard()
    /// return try await next(renewed)
    /// ```
    public struct Next: Sendable {
        private let run: TransferRun
        private let chain: Chain
        /// The index of the next interceptor.
        private let index: Int

        init(_ run: TransferRun, _ chain: Chain, at index: Int = 0) {
            self.run = run
            self.chain = chain
            self.index = index
        }

        /// Passes a request on and returns the response as soon as its head arrives.
        ///
        /// Discarding the response unread ends its attempt. Cancelling the task ends the attempt, too.
        /// - Parameter request: The request to send.
        /// - Returns: The response, its body unread.
        /// - Throws: `NetworkError`: any kind that a transfer can end with before its body; `.bodyNotReplayable` when
        ///   the request's body was sent before and can be read only once; `.interceptorFailed` when an interceptor
        ///   behind this one threw an error that is not a `NetworkError`.
        public func callAsFunction(_ request: Request) async throws(NetworkError) -> IncomingResponse {
            guard index < chain.interceptors.count else { return try await run.send(request) }
            let interceptor = chain.interceptors[index]
            do {
                let rest = Interception.Next(run, chain, at: index + 1)
                return try await interceptor.intercept(request, context: run.context(for: request), next: rest)
            } catch let error as NetworkError {
                throw error
            } catch is CancellationError {
                throw NetworkError(.cancelled, phase: run.phase, "The transfer was cancelled.", request: request)
            } catch {
                throw NetworkError(
                    .interceptorFailed, phase: run.phase,
                    "\(type(of: interceptor)) threw \(type(of: error)).",
                    cause: error, request: request)
            }
        }
    }
}
