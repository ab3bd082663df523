// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Why there is no token.
enum TokenFailure: Error {
    case notFetched(any Error)
    case notSaved(any Error)
    case tooSlow(Duration)
    case storeTooSlow(Duration)
    case takenAway
    /// Several tries have failed, and the next one is not made yet.
    indirect case paused(Duration, after: TokenFailure?)

    /// The error of the user's own code; of an authorization server that refused, what it said.
    var cause: (any Error)? {
        switch self {
        case .notFetched(let error as NetworkError) where error.kind == .authenticationFailed: error.cause ?? error
        case .notFetched(let error), .notSaved(let error): error
        case .paused(_, after: let failure): failure?.cause
        case .tooSlow, .storeTooSlow, .takenAway: nil
        }
    }

    /// How long another request would fail for the same reason, as far as anybody says.
    var retryAfter: Duration? {
        switch self {
        case .paused(let left, after: _): left
        case .notFetched(let error): (error as? NetworkError)?.retryAfter
        default: nil
        }
    }

    /// What to try.
    var hint: String {
        switch self {
        case .notFetched(let error as NetworkError) where error.hint != nil: error.hint ?? ""
        case .notFetched: "The cause says why; the next request tries to get one again."
        case .notSaved, .storeTooSlow: "Look at the store; the token is used until the program ends."
        case .tooSlow: "Look at the closure that gets tokens: it has to heed cancellation, or to bound its time."
        case .takenAway: "Somebody logged out, by replace(nil)."
        case .paused(_, after: let failure): failure?.hint ?? ""
        }
    }
}

extension TokenFailure: CustomStringConvertible {
    /// The rest of a sentence, with its full stop; nothing of a foreign cause, which may tell secrets.
    var description: String {
        switch self {
        case .notFetched(let error as NetworkError): "getting one failed: \(error.message)"
        case .notFetched(let error): "getting one failed with a \(type(of: error))."
        case .notSaved(let error): "the store did not keep it, with a \(type(of: error))."
        case .tooSlow(let timeout): "getting one took longer than \(timeout)."
        case .storeTooSlow(let timeout): "the store took longer than \(timeout)."
        case .takenAway: "it was taken away while the request waited."
        case .paused(let left, after: _):
            "getting one failed several times in a row, and is not tried again for \(left.inSeconds.rounded(.up)) s."
        }
    }
}
