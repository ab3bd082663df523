// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Shows a name and a password with every request, unasked (RFC 7617).
///
/// Everybody on the way can read them unless the connection is secure, and nothing here demands that; where the server
/// is to choose, see ``PasswordAuthentication``. A request that says itself who asks, by a field `Authorization` or by
/// the user-info of its URL, goes as it is. A name with a colon, and control characters, are `.invalidRequest` with the
/// cause ``InvalidCredential``.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .basic("anna", password) }
/// ```
public struct BasicAuthentication: Authenticator {
    private let user: String
    private let password: String

    /// Takes name and password, which are looked at when a request is sent.
    ///
    /// - Parameters:
    ///   - user: The name, sent in UTF-8.
    ///   - password: The password, sent in UTF-8.
    public init(_ user: String, _ password: String) {
        self.user = user
        self.password = password
    }

    /// Adds `Authorization`, unless the request says itself who asks.
    /// - Throws: `NetworkError`: `.invalidRequest` for what no Basic credential can express, else what `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !request.saysWhoAsks else { return try await next(request) }
        var request = request
        request.fields[.authorization] = try Credential.basic(user, password, for: request).fieldValue
        return try await next(request)
    }
}

/// Shows a token with every request, unasked (RFC 6750).
///
/// Everybody on the way can read it unless the connection is secure, and nothing here demands that. A request that says
/// itself who asks, by a field `Authorization` or by the user-info of its URL, goes as it is.
///
/// ```swift
/// let api = Client("https://api.example.com").with { $0.auth = .bearer(token) }
/// ```
public struct BearerAuthentication: Authenticator {
    private let credential: Credential

    /// Takes a token.
    ///
    /// - Parameter token: Sent as it is; with control characters the request is `.invalidRequest`.
    public init(_ token: String) { credential = .bearer(token) }

    /// Adds `Authorization`, unless the request says itself who asks.
    /// - Throws: What `next` throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        guard !request.saysWhoAsks else { return try await next(request) }
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
    public static func basic(_ user: String, _ password: String) -> BasicAuthentication {
        BasicAuthentication(user, password)
    }
}

extension Interceptor where Self == BearerAuthentication {
    /// Shows a token with every request, unasked.
    ///
    /// - Parameter token: The token, sent as it is.
    public static func bearer(_ token: String) -> BearerAuthentication { BearerAuthentication(token) }
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
