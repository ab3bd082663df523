// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The redirects one transfer has followed, and the end of those that would go on for ever.
///
/// The loop around it: a response comes and gets ``marking(_:)``, ``RedirectRules`` make a proposal of it, the policy
/// decides, ``follow(_:after:_:metrics:)`` accepts what is next or throws, and that is sent.
struct RedirectTrail: Sendable {
    /// What makes two requests the same.
    private struct Step: Hashable, Sendable {
        var method: Method
        var url: String
        var fields: HeaderFields

        init(_ request: Request) {
            method = request.method
            url = (try? RequestTarget(request.urlText).text) ?? request.urlText
            fields = request.fields
        }
    }

    private let maximum: Int
    /// The redirects followed, oldest first.
    private(set) var history: [RedirectHop] = []
    /// How often each step was sent since a response last set a cookie.
    private var sent: [Step: Int] = [:]

    /// How often the same may be sent: a server may send a request back until something is ready.
    static let mostVisits = 5

    /// - Parameter max: How many redirects may be followed.
    init(max: Int) { maximum = max }

    /// The head with the redirects that led to it.
    func marking(_ head: ResponseHead) -> ResponseHead {
        var copy = head
        copy.history = history
        return copy
    }

    /// Notes that `head`, the response to `request`, leads to `next`, which is sent now.
    ///
    /// - Throws: `.tooManyRedirects` when that is one too many, or when `next` was sent ``mostVisits`` times with the
    ///   same method, URL and fields and no response since has set a cookie (RFC 9110 §15.4).
    mutating func follow(
        _ next: Request, after request: Request, _ head: ResponseHead, metrics: TransferMetrics
    ) throws(NetworkError) {
        guard history.count < maximum else {
            throw refused(
                "More than \(maximum) redirects came one after the other.",
                hint: "Raise the maximum of the redirect policy if they lead somewhere.", request, head)
        }
        sent[Step(request), default: 0] += 1
        if head[.setCookie] != nil { sent.removeAll() }
        guard sent[Step(next), default: 0] < Self.mostVisits else {
            throw refused(
                "The redirects go in a circle, which has led to \(next) \(Self.mostVisits) times.",
                hint: "The server may expect a cookie, another field, or a signed-in user.", request, head)
        }
        history.append(RedirectHop(method: request.method, url: request.urlText, head: head, metrics: metrics))
    }

    private func refused(
        _ message: String, hint: String, _ request: Request, _ head: ResponseHead
    ) -> NetworkError {
        NetworkError(
            .tooManyRedirects, phase: .receiving, message, hint: hint, request: request, response: marking(head))
    }
}
