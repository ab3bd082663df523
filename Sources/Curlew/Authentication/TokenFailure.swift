// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The reason why there is no token.
enum TokenFailure: Error {
    case notFetched(any Error)
    case notSaved(any Error)
    case tooSlow(Duration)
    case storeTooSlow(Duration)
    case tokenRemoved
    /// Several fetches have failed, and the next one has not started yet.
    indirect case paused(Duration, after: TokenFailure?)

    /// The error of the user's own code; for an authorization server that refused, its error response.
    var cause: (any Error)? {
        switch self {
        case .notFetched(let error as NetworkError) where error.kind == .authenticationFailed: error.cause ?? error
        case .notFetched(let error), .notSaved(let error): error
        case .paused(_, after: let failure): failure?.cause
        case .tooSlow, .storeTooSlow, .tokenRemoved: nil
        }
    }

    /// The time for which other requests would fail for the same reason, if it is known.
    var retryAfter: Duration? {
        switch self {
        case .paused(let left, after: _): left
        case .notFetched(let error): (error as? NetworkError)?.retryAfter
        default: nil
        }
    }

    /// A suggestion for the developer.
    var hint: String {
        switch self {
        case .notFetched(let error as NetworkError) where error.hint != nil: error.hint ?? ""
        case .notFetched: "See the cause; the next request fetches a token again."
        case .notSaved, .storeTooSlow: "Check the token store; the token is used until the program ends."
        case .tooSlow: "Make the closure that gets tokens react to cancellation, or limit its time."
        case .tokenRemoved: "The program called replace(nil), for instance to log out."
        case .paused(_, after: let failure): failure?.hint ?? ""
        }
    }
}

extension TokenFailure: CustomStringConvertible {
    /// The rest of a sentence, with its full stop; without the text of a foreign cause, which may contain secrets.
    var description: String {
        switch self {
        case .notFetched(let error as NetworkError): "fetching one failed: \(error.message)"
        case .notFetched(let error): "fetching one failed with the error \(type(of: error))."
        case .notSaved(let error): "the store failed to save it and threw \(type(of: error))."
        case .tooSlow(let timeout): "fetching one took longer than \(timeout)."
        case .storeTooSlow(let timeout): "the store took longer than \(timeout)."
        case .tokenRemoved: "it was removed while the request waited."
        case .paused(let left, after: _):
            "fetching one failed several times in a row, and is paused for \(left.inSeconds.rounded(.up)) s."
        }
    }
}
