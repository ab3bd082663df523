// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Shows a name and a password with every request, unasked (RFC 7617).
///
/// Without TLS, anyone on the network can read them, so a request to an http URL of another machine fails with
/// `.invalidRequest` unless `allowsPlainHTTP` is true (RFC 7617 §4). To let the server choose the scheme, use
/// ``PasswordAuthentication``. A request with its own `Authorization` field, or with user-info in its URL, is sent
/// unchanged. Control characters, and a name with a colon, fail with `.invalidRequest` and the cause
/// ``InvalidCredential``.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .basic("anna", password) }
/// ```
public struct BasicAuthentication: Authenticator {
    private let user: String
    private let password: String
    private let allowsPlainHTTP: Bool

    /// Takes name and password, which are looked at when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name, sent in UTF-8.
    ///   - password: The password, sent in UTF-8.
    ///   - allowsPlainHTTP: Whether they are sent without TLS, too, where others can read them; false unless given. This
    ///     machine (localhost, 127.0.0.0/8, ::1) gets them in any case.
    public init(_ user: String, _ password: String, allowsPlainHTTP: Bool = false) {
        self.user = user
        self.password = password
        self.allowsPlainHTTP = allowsPlainHTTP
    }

    /// Adds `Authorization`, unless the request says itself who asks.
    /// - Throws: `NetworkError`: `.invalidRequest` for what no Basic credential can express and for an http URL, else what
    ///   `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !request.saysWhoAsks else { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Basic credentials", unless: allowsPlainHTTP, option: ".basic(…, allowsPlainHTTP: true)")
        var request = request
        request.fields[.authorization] = try Credential.basic(user, password, for: request).fieldValue
        return try await next(request)
    }
}

/// Shows a token with every request, unasked (RFC 6750).
///
/// Without TLS, anyone on the network can read it, so a request to an http URL of another machine fails with
/// `.invalidRequest` unless `allowsPlainHTTP` is true (RFC 6750 §5.3). A request with its own `Authorization` field, or
/// with user-info in its URL, is sent unchanged.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .bearer(token) }
/// ```
public struct BearerAuthentication: Authenticator {
    private let credential: Credential
    private let allowsPlainHTTP: Bool

    /// Takes a token.
    ///
    /// - Parameters:
    ///   - token: Sent as it is; with control characters the request is `.invalidRequest`.
    ///   - allowsPlainHTTP: Whether it is sent without TLS, too, where others can read it; false unless given. This machine
    ///     (localhost, 127.0.0.0/8, ::1) gets it in any case.
    public init(_ token: String, allowsPlainHTTP: Bool = false) {
        credential = .bearer(token)
        self.allowsPlainHTTP = allowsPlainHTTP
    }

    /// Adds `Authorization`, unless the request says itself who asks.
    /// - Throws: `NetworkError`: `.invalidRequest` for an http URL, else what `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !request.saysWhoAsks else { return try await next(request) }
        try request.refusePlainHTTP(
            for: "Bearer tokens", unless: allowsPlainHTTP, option: ".bearer(…, allowsPlainHTTP: true)")
        var request = request
        request.fields[.authorization] = credential.fieldValue
        return try await next(request)
    }
}

extension Interceptor where Self == BasicAuthentication {
    /// Shows a name and a password with every request, unasked.
    ///
    /// - Parameters:
    ///   - user: The name.
    ///   - password: The password.
    ///   - allowsPlainHTTP: Whether they are sent without TLS, too; false unless given.
    public static func basic(
        _ user: String, _ password: String, allowsPlainHTTP: Bool = false
    ) -> BasicAuthentication {
        BasicAuthentication(user, password, allowsPlainHTTP: allowsPlainHTTP)
    }
}

extension Interceptor where Self == BearerAuthentication {
    /// Shows a token with every request, unasked.
    ///
    /// - Parameters:
    ///   - token: The token, sent as it is.
    ///   - allowsPlainHTTP: Whether it is sent without TLS, too; false unless given.
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
