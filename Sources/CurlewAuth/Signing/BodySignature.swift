// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// Signs requests with a closure that gets the request and its body and returns the fields to add.
///
/// The closure is called for each attempt, so that times in signatures are those of the attempt. The body is sent
/// exactly as it was signed: it is not compressed.
///
/// ```swift
/// let webhooks = Client("https://example.com/hooks").with {
///     $0.auth = .signing { _, body, _ in
///         let time = Int(Date().timeIntervalSince1970)
///         let code = try await body.hmac(key: secret, after: "\(time).")
///         return ["Example-Signature": "t=\(time),v1=\(code.hexadecimal)"]
///     }
/// }
/// ```
public struct BodySignature: Authenticator {
    private let sign: @Sendable (Request, SignableBody, Interception.Context) async throws -> HeaderChanges

    /// Creates an authenticator from the closure that signs.
    ///
    /// - Parameter sign: Gets the request, its body and the context of the transfer, and returns the changes to the
    ///   request's fields. Called for each attempt, and concurrently for many attempts. An error that it throws ends
    ///   the transfer.
    public init(
        _ sign: @escaping @Sendable (Request, SignableBody, Interception.Context) async throws -> HeaderChanges
    ) {
        self.sign = sign
    }

    /// Calls the closure and sends the request with the changes.
    /// - Throws: The error that the closure throws, and the errors of transfers.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        let changes = try await sign(request, SignableBody(request.body), context)
        var signed = request.withoutCompression
        for name in changes.removed { signed.fields.remove(name) }
        signed.fields.merge(changes.fields)
        return try await next(signed)
    }
}

extension Interceptor where Self == BodySignature {
    /// Signs requests with a closure.
    ///
    /// - Parameter sign: The closure that signs; see ``BodySignature/init(_:)``.
    public static func signing(
        _ sign: @escaping @Sendable (Request, SignableBody, Interception.Context) async throws -> HeaderChanges
    ) -> BodySignature {
        BodySignature(sign)
    }
}

extension Request {
    /// A copy of the request whose body is not compressed: the signature must match the bytes that arrive.
    var withoutCompression: Request {
        guard !body.isNone else { return self }
        var request = self
        request.options.compression = .off
        return request
    }
}
