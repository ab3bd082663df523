// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Signs requests by a rule of its own: a closure that sees the request and its body and gives the fields to add.
///
/// Asked anew for each attempt, so that times in signatures are those of the attempt. What is signed is what is sent: the
/// body is not compressed on its way.
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
    private let sign: @Sendable (Request, SignableBody, InterceptorContext) async throws -> HeaderChanges

    /// Takes the closure that signs.
    ///
    /// - Parameter sign: Gets the request, its body and what is known of the transfer, and gives what changes in the
    ///   request's fields. Called for each attempt, for many at once. What it throws ends the transfer.
    public init(
        _ sign: @escaping @Sendable (Request, SignableBody, InterceptorContext) async throws -> HeaderChanges
    ) {
        self.sign = sign
    }

    /// Asks the closure and passes the request on with the changes.
    /// - Throws: What the closure throws, and what ends transfers.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        let changes = try await sign(request, SignableBody(request.body), context)
        var signed = request.sentAsItIs
        for name in changes.removed { signed.fields.remove(name) }
        signed.fields.merge(changes.fields)
        return try await next(signed)
    }
}

extension Interceptor where Self == BodySignature {
    /// Signs requests by a closure.
    ///
    /// - Parameter sign: As in ``BodySignature/init(_:)``.
    public static func signing(
        _ sign: @escaping @Sendable (Request, SignableBody, InterceptorContext) async throws -> HeaderChanges
    ) -> BodySignature {
        BodySignature(sign)
    }
}

extension Request {
    /// The request with a body that nothing changes any more: a signature is for the bytes that arrive.
    var sentAsItIs: Request {
        guard !body.isNone else { return self }
        var request = self
        request.options.compression = .off
        return request
    }
}
