// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Request {
    /// How a request uses the cookies of its session's jar.
    public enum CookieUse: String, Sendable, Hashable, Codable, CaseIterable {
        /// Sends the jar's cookies, and stores those of the response.
        case jar
        /// Sends the jar's cookies, but does not store those of the response.
        case readOnly
        /// Neither sends nor stores cookies of the jar.
        case none
    }
}

/// Adds the cookies of a jar to each request, and stores the cookies of each response.
///
/// It is the innermost interceptor, so it also sees the responses of challenges, and the other interceptors see
/// requests without the jar's cookies.
struct CookieInterceptor: FoldableInterceptor {
    let jar: CookieJar
    /// The `Cookie` field of the session's configuration; nil without one.
    private let configured: String?

    let plainInterest: ChainInterest? = ChainInterest.setCookie
    let isInnermost = true
    let noticedFields: HeadFields = []

    var revision: Revision? { jar.revision }

    /// - Parameter fields: The fields of the session.
    init(jar: CookieJar, fields: HeaderFields) {
        self.jar = jar
        configured = fields.cookie
    }

    func interest(in request: Request) -> ChainInterest? {
        request.options.cookies == .jar ? ChainInterest.setCookie : ChainInterest()
    }

    func adapted(_ request: Request) -> Request? {
        guard request.options.cookies != .none, let found = jar.lookUp(request.url), let field = found.field else {
            return nil
        }
        var adapted = request
        let given = request.fields.cookie ?? (request.withheld.contains(.cookie) ? nil : configured)
        adapted.fields[.cookie] = given.map { Self.merged($0, found.cookies) } ?? field
        return adapted
    }

    /// Returns a field with the caller's cookies and those cookies of the jar that have other names.
    static func merged(_ given: String, _ cookies: [Cookie]) -> String {
        // Bytes are compared: for Swift, strings of different bytes can be equal.
        let names = Set(
            given.utf8.split(separator: UInt8(ascii: ";")).map { pair in
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                // A pair without "=" is a cookie without a name.
                return name.count == pair.count ? [] : Array(name.drop { $0.isLinearSpace })
            })
        let added = cookies.filter { !names.contains(Array($0.name.utf8)) }.map(\.pair)
        return (given.isEmpty ? added : [given] + added).joined(separator: "; ")
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        // An interceptor may have made a new request, to which redirects must not give the session's field.
        let request = context.withholding(request)
        let response = try await next(adapted(request) ?? request)
        // Most heads have no such field; a look-up of one field does not parse the others.
        if request.options.cookies == .jar, response.head[.setCookie] != nil {
            await jar.loadSuffixes()
            jar.receive(response.head, from: response.request.url)
        }
        return response
    }
}

extension HeaderFields {
    /// The `Cookie` fields as one; unlike other fields, they are joined by a semicolon (RFC 6265bis §5.8.3).
    fileprivate var cookie: String? {
        contains(.cookie) ? values(for: .cookie).joined(separator: "; ") : nil
    }
}

extension ChainInterest {
    fileprivate static let setCookie: ChainInterest = {
        var interest = ChainInterest()
        interest.fields = .setCookie
        return interest
    }()
}
