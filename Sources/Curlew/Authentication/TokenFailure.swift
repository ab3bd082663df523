// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Why there is no token.
enum TokenFailure: Error {
    case notFetched(any Error)
    case notSaved(any Error)
    case tooSlow(Duration)
    case takenAway
    /// Several tries have failed, and the next one is not made yet.
    case paused(Duration, after: (any Error)?)

    /// The error of the user's own code; of an authorization server that refused, what it said.
    var cause: (any Error)? {
        switch self {
        case .notFetched(let error as NetworkError), .paused(_, after: let error as NetworkError):
            error.kind == .authenticationFailed ? error.cause ?? error : error
        case .notFetched(let error), .notSaved(let error): error
        case .paused(_, after: let error): error
        case .tooSlow, .takenAway: nil
        }
    }

    /// How long another request would fail for the same reason.
    var retryAfter: Duration? { if case .paused(let left, after: _) = self { left } else { nil } }
}

extension TokenFailure: CustomStringConvertible {
    /// The rest of a sentence, with its full stop; nothing of a foreign cause, which may tell secrets.
    var description: String {
        switch self {
        case .notFetched(let error as NetworkError): "getting one failed: \(error.message)"
        case .notFetched(let error): "getting one failed with a \(type(of: error))."
        case .notSaved(let error): "the store did not keep it, with a \(type(of: error))."
        case .tooSlow(let timeout): "getting one took longer than \(timeout)."
        case .takenAway: "it was taken away while the request waited."
        case .paused(let left, after: _):
            "getting one failed several times in a row, and is not tried again for \(left.inSeconds.rounded(.up)) s."
        }
    }
}
