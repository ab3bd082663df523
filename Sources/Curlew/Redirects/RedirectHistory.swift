// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The redirects that one transfer has followed; it also detects redirect loops.
///
/// The loop that uses the history: each response passes ``marking(_:)``, ``RedirectRules`` derive a proposal from the
/// response, the policy decides, ``follow(_:after:_:metrics:)`` accepts the next request or throws, and the request is
/// sent.
struct RedirectHistory: Sendable {
    /// The identity of a request for the detection of loops.
    private struct Step: Hashable, Sendable {
        var method: Method
        var url: String
        var fields: HeaderFields

        init(_ request: Request) {
            method = request.method
            url = (try? RequestTarget(request.url).text) ?? request.url
            fields = request.fields
        }
    }

    private let maximum: Int
    /// The number of redirects followed.
    private var count = 0
    /// The redirects followed and those that interceptors have added, oldest first.
    private(set) var history: [ResponseHead.RedirectHop] = []
    /// The number of times that each request was sent since a response last set a cookie.
    private var sent: [Step: Int] = [:]

    /// The maximum number of times that the same request may be sent: a server may redirect a request to its own URL
    /// until a resource is ready.
    static let maximumVisits = 5

    /// - Parameter max: How many redirects may be followed.
    init(max: Int) { maximum = max }

    /// Returns the head with the redirects that preceded it.
    func marking(_ head: ResponseHead) -> ResponseHead {
        var copy = head
        copy.history = history
        return copy
    }

    /// Adds redirects that an interceptor has made without a response of the server; they do not count.
    mutating func add(_ hops: [ResponseHead.RedirectHop]) { history += hops }

    /// Records that `head`, the response to `request`, redirects to `next`, which is sent now.
    ///
    /// - Throws: `.tooManyRedirects` when the maximum is exceeded, or when `next` was sent ``maximumVisits`` times with
    ///   the same method, URL and fields and no response since has set a cookie (RFC 9110 §15.4).
    mutating func follow(
        _ next: Request, after request: Request, _ head: ResponseHead, metrics: TransferMetrics
    ) throws(NetworkError) {
        guard count < maximum else {
            throw refused(
                "More than \(maximum) redirects followed each other.",
                hint: "Raise the maximum of the redirect policy if the redirects are intended.", request, head)
        }
        sent[Step(request), default: 0] += 1
        if head[.setCookie] != nil { sent.removeAll() }
        guard sent[Step(next), default: 0] < Self.maximumVisits else {
            throw refused(
                "The redirects form a loop, which has reached \(next) \(Self.maximumVisits) times.",
                hint: "The server may expect a cookie, another field, or a signed-in user.", request, head)
        }
        count += 1
        history.append(ResponseHead.RedirectHop(method: request.method, url: request.url, head: head, metrics: metrics))
    }

    private func refused(
        _ message: String, hint: String, _ request: Request, _ head: ResponseHead
    ) -> NetworkError {
        NetworkError(
            .tooManyRedirects, phase: .receiving, message, hint: hint, request: request, response: marking(head))
    }
}
