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
    /// A limit of time: how long it is, and the option that sets it, such as "60 s (`options.timeouts.idle`)".
    ///
    /// - Parameters:
    ///   - member: The member of ``Timeouts``.
    ///   - length: How long it is; nil where that is unknown.
    ///   - request: The request whose options win over those of its session; nil where it is unknown.
    static func limit(_ member: String, _ length: Duration?, of request: Request?) -> String {
        let option =
            if member == "total", request?.options.timeout != nil {
                "`options.timeout`"
            } else if request?.options.timeouts != nil {
                "`options.timeouts.\(member)`"
            } else {
                "`timeouts.\(member)` of the session"
            }
        return length.map { "\($0.brief) (\(option))" } ?? option
    }

    /// The sentence for a transfer whose total time is over.
    static func lateness(of request: Request?, after total: Duration?) -> String {
        "The transfer took longer than \(limit("total", total, of: request))."
    }
}
