// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The error of an endpoint: a problem that the server reported, or any other failure.
///
/// ```swift
/// do {
///     try await api.send(Ping())
/// } catch {
///     print(error.problem?.title ?? error.network.message)
/// }
/// ```
///
/// In a closure, which does not infer the error type, write `catch let error as APIError<ProblemDetails>`.
public enum APIError<Problem: Decodable & Sendable>: Error {
    /// The server refused the request with a status and a readable body.
    case rejected(Problem, NetworkError)
    /// Any other failure, including a refusal without a readable body.
    case failed(NetworkError)

    /// Creates the error from a network error, with the problem that `problem` reads from a refusal.
    init(_ error: NetworkError, reading problem: (NetworkError) -> Problem?) {
        if error.kind == .unacceptableStatus, let problem = problem(error) {
            self = .rejected(problem, error)
        } else {
            self = .failed(error)
        }
    }

    /// The problem that the server reported; nil without a readable problem.
    public var problem: Problem? { if case .rejected(let problem, _) = self { problem } else { nil } }

    /// The underlying network error; for a refusal, it has the head and the start of the body.
    public var network: NetworkError {
        switch self {
        case .rejected(_, let error), .failed(let error): error
        }
    }
}

extension APIError: CustomStringConvertible, CustomReflectable {
    /// The description of the network error; it omits the problem, which may have any content.
    public var description: String { network.description }

    /// A mirror that shows only the network error.
    public var customMirror: Mirror { Mirror(self, children: ["network": network]) }
}

extension APIError: LocalizedError {
    /// The message of the network error, also returned by `localizedDescription`; it omits the problem.
    public var errorDescription: String? { network.errorDescription }

    /// The hint of the network error, if there is one.
    public var recoverySuggestion: String? { network.recoverySuggestion }
}
