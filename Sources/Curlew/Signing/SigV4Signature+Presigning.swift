// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension SigV4Signature {
    /// How long a URL with a signature can be good for, in seconds: up to seven days.
    private static let expiries: ClosedRange<Int64> = 1...604_800

    /// A URL with a signature in its query: whoever has it can make this one request until it expires.
    ///
    /// Of S3 the body is not signed; of other services it is, so the request has to have it. Fields of the request are
    /// signed and have to be sent with the URL as they are. The URL is a secret as long as it is good; temporary
    /// credentials may end it earlier.
    ///
    /// ```swift
    /// let signature = SigV4Signature(region: "eu-central-1", service: "s3") { credentials }
    /// let link = try await signature.presignedURL(
    ///     for: "https://photos.s3.amazonaws.com/bird.jpg", expiresIn: .seconds(900))
    /// ```
    ///
    /// - Parameters:
    ///   - request: Method, URL and fields, and the body where it is signed.
    ///   - expiresIn: How long it is good for, in whole seconds, from 1 s to 7 days.
    /// - Throws: `NetworkError` of kind `invalidRequest` for another time, or a URL that has a signature already or is
    ///   invalid; `.bodyFailed` when the body's source fails. What the closure that gives keys throws.
    public func presignedURL(for request: Request, expiresIn: Duration) async throws -> URL {
        let seconds = expiresIn.asWait.components.seconds
        guard Self.expiries.contains(seconds) else {
            throw refused(
                .usage, "A presigned URL cannot be valid for \(expiresIn).", "Use 1 second to 7 days.", request)
        }
        let target = try request.target()
        guard target.query?.contains("X-Amz-Signature=") != true else {
            throw refused(.url, "The URL has a signature already.", "Sign the URL without it.", request)
        }
        let keys = try await keys()
        let scope = scope(for: target)
        var query = [
            ("X-Amz-Algorithm", SigV4Scope.algorithm), ("X-Amz-Credential", "\(keys.accessKey)/\(scope.text)"),
            ("X-Amz-Date", scope.time), ("X-Amz-Expires", String(seconds)),
            ("X-Amz-SignedHeaders", CanonicalRequest.signedNames(of: request.fields)),
        ]
        if let token = keys.sessionToken { query.append(("X-Amz-Security-Token", token)) }
        let own = target.query.map { $0.isEmpty ? "" : $0 + "&" } ?? ""
        let signed =
            own + query.map { "\($0.0)=\($0.1.percentEncoded(keeping: .unreserved))" }.joined(separator: "&")
        let payload = isS3 ? Self.unsignedPayload.text : try await SignableBody(request.body).digest().hexadecimal
        let canonical = CanonicalRequest(
            method: request.method.rawValue, target: target, query: signed, rule: rule, fields: request.fields,
            payload: payload)
        let signature = try scope.signature(of: canonical, key: try scope.key(keys.secretKey))
        let base = target.text.prefix { $0 != "?" }
        guard let url = URL(string: "\(base)?\(signed)&X-Amz-Signature=\(signature)") else {
            throw refused(.url, "The signed URL is not a valid URL.", "Check its host and path.", request)
        }
        return url
    }

    private func refused(
        _ flaw: NetworkError.RequestFlaw, _ message: String, _ hint: String, _ request: Request
    ) -> NetworkError {
        NetworkError(invalid: flaw, message, hint: hint, request: request)
    }
}
