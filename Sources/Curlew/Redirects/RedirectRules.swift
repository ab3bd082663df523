// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Derives the next request from a redirecting response (RFC 9110 §15.4), as pure functions.
enum RedirectRules {
    /// The request that a response redirects to.
    struct Proposal: Sendable {
        /// The next request.
        var request: Request
        /// Whether scheme, host and port stay the same.
        var isSameOrigin: Bool
        /// Whether the redirect leads from https to http.
        var isDowngrade: Bool
    }

    /// The statuses that redirect together with a `Location` (RFC 9110 §15.4): not 300, which offers a choice, and not
    /// 304 to 306.
    static let statuses = ChainInterest.Statuses([301, 302, 303, 307, 308])

    /// The maximum length of `Location` in bytes; a longer one is an error.
    static let longestLocation = 8192

    /// Returns the request that `head`, the response to `request`, redirects to; nil when the response is the result.
    ///
    /// - Parameters:
    ///   - target: The normalised target of `request`.
    ///   - names: Fields to omit in a request to another origin, besides the sensitive ones.
    ///   - hsts: The hosts that require https, to which an http URL leads over TLS; nil without HSTS.
    /// - Throws: `.invalidResponse` in phase `receiving` for an invalid `Location`, or several different ones.
    static func proposal(
        for request: Request, target: RequestTarget, _ head: ResponseHead, withholding names: [HeaderName],
        hsts: HSTSStore? = nil
    ) throws(NetworkError) -> Proposal? {
        guard head.status.redirects, let location = try location(of: head, request) else { return nil }
        let reference = URLReference(location)
        let next = try destination(reference, from: target, request, head)

        // The request to a host that requires https will not be sent without TLS.
        let sent = hsts?.upgraded(next.text).flatMap { try? RequestTarget($0) } ?? next
        let isSameOrigin = sent.isSameOrigin(as: target)
        let method = method(after: head.status, request.method)
        var proposed = request
        proposed.url = text(of: next, reference, request)
        // The redirect is judged as one to https, and must be sent so even if the policy of the host ends before.
        proposed.upgradesToHTTPS = sent.scheme != next.scheme
        if method != request.method {
            proposed.method = method
            proposed.body = .none
            proposed.fields = HeaderFields(request.fields.filter { !describesContent($0.name) })
        }
        if !isSameOrigin {
            let left = Set(HeaderName.sensitive + names)
            proposed.fields = HeaderFields(proposed.fields.filter { !left.contains($0.name) })
        }
        proposed.withheld = withheld(after: request, isSameOrigin: isSameOrigin, names)
        return Proposal(
            request: proposed, isSameOrigin: isSameOrigin, isDowngrade: target.scheme == .https && sent.scheme == .http)
    }

    /// Returns the method of the next request.
    ///
    /// 301 and 302 turn POST into GET, as all common clients do (RFC 9110 §15.4.2, §15.4.3); 303 turns the method into
    /// GET or HEAD (§15.4.4); 307 and 308 keep it (§15.4.8, §15.4.9).
    private static func method(after status: Status, _ method: Method) -> Method {
        switch status {
        case .movedPermanently, .found: method == .post ? .get : method
        case .seeOther: method == .head ? .head : .get
        default: method
        }
    }

    /// Whether a field describes the body, and so is removed with it (RFC 9110 §15.4, item 5; RFC 9530 for digests).
    private static func describesContent(_ name: HeaderName) -> Bool {
        name.canonical.hasPrefix("content-") || aboutContent.contains(name)
    }

    private static let aboutContent: Set<HeaderName> = [
        "Digest", "Repr-Digest", .lastModified, .expect, .transferEncoding, .trailer,
    ]

    /// Returns the value of `Location` (RFC 9110 §10.2.2); nil without one.
    private static func location(of head: ResponseHead, _ request: Request) throws(NetworkError) -> String? {
        let values = head.fields.values(for: .location)
        guard let first = values.first else { return nil }
        guard values.allSatisfy({ $0 == first }) else {
            throw refused(
                "has several Location fields that differ.", hint: "A response has one Location (RFC 9110 §10.2.2).",
                request, head)
        }
        guard first.utf8.count <= longestLocation else {
            throw refused(
                "has a Location of \(first.utf8.count) bytes.",
                hint: "Curlew accepts at most \(longestLocation) bytes.", request, head)
        }
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        guard let start = first.firstIndex(where: { !isSpace($0) }) else { return "" }
        return String(first[start...(first.lastIndex { !isSpace($0) } ?? start)])
    }

    /// Returns the target of the reference, with the user-info of `target` if the origin stays the same.
    private static func destination(
        _ reference: URLReference, from target: RequestTarget, _ request: Request, _ head: ResponseHead
    ) throws(NetworkError) -> RequestTarget {
        guard !reference.hasUserInfo else {
            throw refused(
                "has user-info in its Location.",
                hint: "A received URL with credentials is treated as an error (RFC 9110 §4.2.4).", request,
                head)
        }
        do throws(InvalidURL) {
            let next = try RequestTarget(reference.resolved(against: target))
            guard let userInfo = target.userInfo, next.userInfo == nil, next.isSameOrigin(as: target) else {
                return next
            }
            let start = "\(next.scheme.rawValue)://"
            return try RequestTarget(start + userInfo + "@" + next.text.dropFirst(start.count))
        } catch {
            throw refused(
                "has an unusable Location: \(error).", hint: "Redirects need http or https URLs.", cause: error,
                request, head)
        }
    }

    /// Returns the URL with the fragment of the reference, or else of the redirected request (RFC 9110 §10.2.2).
    private static func text(of next: RequestTarget, _ reference: URLReference, _ request: Request) -> String {
        guard let fragment = reference.fragment ?? URLReference(request.url).fragment else { return next.text }
        return next.text + "#" + String(decoding: fragment, as: UTF8.self)
    }

    /// Returns the names of fields that the session must not add from now on; a name withheld once stays withheld.
    private static func withheld(
        after request: Request, isSameOrigin: Bool, _ names: [HeaderName]
    ) -> [HeaderName] {
        guard !isSameOrigin else { return request.withheld }
        return (HeaderName.sensitive + names).reduce(into: request.withheld) { all, name in
            if !all.contains(name) { all.append(name) }
        }
    }

    /// Returns the request from a policy's closure, with the session's credentials withheld for another origin.
    static func rewritten(
        _ rewritten: Request, of proposal: Proposal, after request: Request, target: RequestTarget,
        withholding names: [HeaderName]
    ) -> Request {
        var next = rewritten
        let keepsURL = rewritten.url == proposal.request.url
        let isSameOrigin =
            keepsURL ? proposal.isSameOrigin : (try? RequestTarget(rewritten.url))?.isSameOrigin(as: target) == true
        next.withheld = withheld(after: request, isSameOrigin: isSameOrigin, names)
        next.upgradesToHTTPS = keepsURL && proposal.request.upgradesToHTTPS
        return next
    }

    private static func refused(
        _ what: String, hint: String, cause: (any Error)? = nil, _ request: Request, _ head: ResponseHead
    ) -> NetworkError {
        NetworkError(
            .invalidResponse, phase: .receiving, "The \(head.status.code) response \(what)", hint: hint, cause: cause,
            request: request, response: head)
    }
}

extension RequestTarget {
    /// Whether scheme, host and port are the same (RFC 6454 §5).
    func isSameOrigin(as other: RequestTarget) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }
}

extension Status {
    /// Whether a response with this status and a `Location` redirects the request.
    var redirects: Bool { RedirectRules.statuses.contains(code) }
}
