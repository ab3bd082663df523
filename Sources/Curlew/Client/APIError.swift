// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Why an endpoint gave no output: the server said why, or something else happened.
///
/// ```swift
/// do {
///     try await api.send(Ping())
/// } catch {
///     print(error.problem?.title ?? error.network.message)
/// }
/// ```
///
/// In a closure, where the type of an error is not inferred: `catch let error as APIError<ProblemDetails>`.
public enum APIError<Problem: Decodable & Sendable>: Error {
    /// The server refused with a status and a body that could be read.
    case rejected(Problem, NetworkError)
    /// Anything else, also a refusal whose body says nothing.
    case failed(NetworkError)

    /// Looks into an error for what the server said.
    init(_ error: NetworkError, reading problem: (NetworkError) -> Problem?) {
        if error.kind == .unacceptableStatus, let problem = problem(error) {
            self = .rejected(problem, error)
        } else {
            self = .failed(error)
        }
    }

    /// What the server said; nil when it said nothing that could be read.
    public var problem: Problem? { if case .rejected(let problem, _) = self { problem } else { nil } }

    /// The error below, with head and start of the body of a refusal.
    public var network: NetworkError {
        switch self {
        case .rejected(_, let error), .failed(let error): error
        }
    }
}

extension APIError: CustomStringConvertible, CustomReflectable {
    /// What the error below says; never what the server said, which may be anything.
    public var description: String { network.description }

    /// The error below alone.
    public var customMirror: Mirror { Mirror(self, children: ["network": network]) }
}

extension APIError: LocalizedError {
    /// The message of the error below, which is also `localizedDescription`; never what the server said.
    public var errorDescription: String? { network.errorDescription }

    /// The hint of the error below, if there is one.
    public var recoverySuggestion: String? { network.recoverySuggestion }
}
