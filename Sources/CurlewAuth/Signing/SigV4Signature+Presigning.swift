// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
public import FoundationEssentials
internal import CurlewSupport

extension SigV4Signature {
    /// The allowed lifetimes of a presigned URL, in seconds: up to seven days.
    private static let expiries: ClosedRange<Int64> = 1...604_800

    /// Returns a URL with a signature in its query; the URL alone permits this one request until it expires.
    ///
    /// For S3 the signature does not cover the body; for other services it does, so the request must have its body. The
    /// signature covers the request's fields, which must be sent unchanged with the URL. The URL is a secret while it
    /// is valid; temporary credentials may end its validity earlier.
    ///
    /// ```swift
    /// let signature = SigV4Signature(region: "eu-central-1", service: "s3") { credentials }
    /// let link = try await signature.presignedURL(
    ///     for: "https://photos.s3.amazonaws.com/bird.jpg", expiresIn: .seconds(900))
    /// ```
    ///
    /// - Parameters:
    ///   - request: Method, URL and fields, and the body if the signature covers it.
    ///   - expiresIn: The lifetime of the URL, in whole seconds, from 1 s to 7 days.
    /// - Throws: `NetworkError` of kind `invalidRequest` for another lifetime, or a URL that is invalid or already has
    ///   a signature; `.bodyFailed` when the body's source fails; the error of the closure that provides the keys.
    public func presignedURL(for request: Request, expiresIn: Duration) async throws -> URL {
        let seconds = expiresIn.asWait.components.seconds
        guard Self.expiries.contains(seconds) else {
            throw refused(
                .usage, "A presigned URL cannot be valid for \(expiresIn).", "Use 1 second to 7 days.", request)
        }
        let target = try request.target()
        guard target.query?.contains("X-Amz-Signature=") != true else {
            throw refused(.url, "The URL already has a signature.", "Sign the URL without it.", request)
        }
        let keys = try await keys()
        let scope = scope(for: target)
        var query = [
            ("X-Amz-Algorithm", SigV4Scope.algorithm), ("X-Amz-Credential", "\(keys.accessKeyID)/\(scope.text)"),
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
        let signature = try scope.signature(of: canonical, key: try scope.key(keys.secretAccessKey))
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
