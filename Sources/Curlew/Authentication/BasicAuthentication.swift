// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Sends a name and a password with every request, without waiting for a challenge (RFC 7617).
///
/// Without TLS, others on the network can read them, so a request to an http URL of another machine fails with
/// `.invalidRequest` unless `allowsPlainHTTP` is true (RFC 7617 §4). To let the server choose the scheme, use
/// ``PasswordAuthentication``. A request with its own `Authorization` field, or with user-info in its URL, is sent
/// unchanged. Control characters, and a name with a colon, fail with `.invalidRequest` and the cause
/// ``Credential/Invalid``.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .basic("anna", password) }
/// ```
public struct BasicAuthentication: Authenticator {
    private let user: String
    private let password: String
    private let allowsPlainHTTP: Bool

    /// Creates authentication with a name and a password, which are checked when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name, sent in UTF-8.
    ///   - password: The password, sent in UTF-8.
    ///   - allowsPlainHTTP: Whether they are also sent without TLS, where others can read them; false unless given.
    ///     They are sent to this machine (localhost, 127.0.0.0/8, ::1) in any case.
    public init(_ user: String, _ password: String, allowsPlainHTTP: Bool = false) {
        self.user = user
        self.password = password
        self.allowsPlainHTTP = allowsPlainHTTP
    }

    /// Adds `Authorization`, unless the request has its own credentials.
    /// - Throws: `NetworkError`: `.invalidRequest` for a name or password that Basic cannot express and for an http
    ///   URL, else the error that `next` throws.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        guard !request.hasOwnCredentials else { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Basic credentials", unless: allowsPlainHTTP, option: ".basic(…, allowsPlainHTTP: true)")
        var request = request
        request.fields[.authorization] = try Credential.basic(user, password, for: request).fieldValue
        return try await next(request)
    }
}

/// Sends a token with every request, without waiting for a challenge (RFC 6750).
///
/// Without TLS, others on the network can read it, so a request to an http URL of another machine fails with
/// `.invalidRequest` unless `allowsPlainHTTP` is true (RFC 6750 §5.3). A request with its own `Authorization` field, or
/// with user-info in its URL, is sent unchanged.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .bearer(token) }
/// ```
public struct BearerAuthentication: Authenticator {
    private let credential: Credential
    private let allowsPlainHTTP: Bool

    /// Creates authentication with a token.
    ///
    /// - Parameters:
    ///   - token: The token, sent unchanged; with control characters the request fails with `.invalidRequest`.
    ///   - allowsPlainHTTP: Whether it is also sent without TLS, where others can read it; false unless given. It is
    ///     sent to this machine (localhost, 127.0.0.0/8, ::1) in any case.
    public init(_ token: String, allowsPlainHTTP: Bool = false) {
        credential = .bearer(token)
        self.allowsPlainHTTP = allowsPlainHTTP
    }

    /// Adds `Authorization`, unless the request has its own credentials.
    /// - Throws: `NetworkError`: `.invalidRequest` for an http URL, else the error that `next` throws.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        guard !request.hasOwnCredentials else { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Bearer tokens", unless: allowsPlainHTTP, option: ".bearer(…, allowsPlainHTTP: true)")
        var request = request
        request.fields[.authorization] = credential.fieldValue
        return try await next(request)
    }
}

extension BasicAuthentication: ComparableInterceptor {
    var comparison: AnyHashable { AnyHashable([user, password, "\(allowsPlainHTTP)"]) }
}

extension BearerAuthentication: ComparableInterceptor {
    var comparison: AnyHashable { AnyHashable([credential.fieldValue, "\(allowsPlainHTTP)"]) }
}

extension Interceptor where Self == BasicAuthentication {
    /// Sends a name and a password with every request, without waiting for a challenge.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether they are also sent without TLS; false unless given.
    public static func basic(
        _ user: String, _ password: String, allowsPlainHTTP: Bool = false
    ) -> BasicAuthentication {
        BasicAuthentication(user, password, allowsPlainHTTP: allowsPlainHTTP)
    }
}

extension Interceptor where Self == BearerAuthentication {
    /// Sends a token with every request, without waiting for a challenge.
    ///
    /// - Parameters:
    ///   - token: The token, sent unchanged.
    ///   - allowsPlainHTTP: Whether it is also sent without TLS; false unless given.
    public static func bearer(_ token: String, allowsPlainHTTP: Bool = false) -> BearerAuthentication {
        BearerAuthentication(token, allowsPlainHTTP: allowsPlainHTTP)
    }
}

extension BasicAuthentication: CustomStringConvertible, CustomReflectable {
    /// The scheme, and "<redacted>".
    public var description: String { "Basic \(redaction)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension BearerAuthentication: CustomStringConvertible, CustomReflectable {
    /// The scheme, and "<redacted>".
    public var description: String { "\(credential)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
