// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension NetworkError: LocalizedError {
    /// The message, which is also `localizedDescription`; without the request, and with control characters escaped.
    public var errorDescription: String? { message.escapingControls }

    /// The hint, if there is one.
    public var recoverySuggestion: String? { hint?.escapingControls }
}

extension NetworkError {
    /// Returns the length of a timeout and the option that sets it, such as "60 s (`options.timeouts.idle`)".
    ///
    /// - Parameters:
    ///   - member: The member of ``Timeouts``.
    ///   - length: The length of the timeout; nil if it is unknown.
    ///   - request: The request whose options override those of its session; nil if it is unknown.
    static func limit(_ member: Timeouts.Name, _ length: Duration?, of request: Request?) -> String {
        let option =
            if request?.options.timeouts.sets(member) == true {
                "`options.timeouts.\(member.rawValue)`"
            } else {
                "`timeouts.\(member.rawValue)` of the session"
            }
        return length.map { "\($0.brief) (\(option))" } ?? option
    }

    /// Returns the message for a transfer that exceeds its total timeout.
    static func totalTimeoutMessage(of request: Request?, after total: Duration?) -> String {
        "The transfer took longer than \(limit(.total, total, of: request))."
    }
}
