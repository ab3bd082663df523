// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
public import FoundationEssentials

/// Signs requests for Amazon Web Services and compatible services: AWS Signature, version 4.
///
/// Each attempt is signed separately, with its own time. The signature covers method, path, query, body, `Host` and the
/// request's fields, except fields that may change in transit (`User-Agent`, `Expect`, tracing fields and those of one
/// connection). It does not cover the fields of a session's configuration, so set `X-Amz-…` fields on requests or
/// clients. Bodies are not compressed. A request with an `Authorization` field of its own, or with a signature in its
/// query, is sent unchanged.
///
/// If a server refuses with 403 or 400 and its `Date` is more than four minutes and at most a day from the local time,
/// the request is signed once more by the server's clock, and so are later ones to that origin (of at most 64). Over
/// plain http the clock is not corrected, except from this machine: an attacker on the network could forge the `Date`
/// and obtain signatures for a later time.
///
/// ```swift
/// let bucket = Client("https://photos.s3.eu-central-1.amazonaws.com").with {
///     $0.auth = .awsSigV4(credentials, region: "eu-central-1", service: "s3")
/// }
/// ```
public struct SigV4Signature: Authenticator {
    /// The way in which the signature covers the body.
    public enum Payload: Sendable, Hashable {
        /// The signature covers the digest of a body that can be read twice.
        ///
        /// A body that can be read only once is not covered for S3 over TLS, and is refused elsewhere.
        case automatic
        /// The signature always covers the digest; a body that can be read only once is refused.
        case signed
        /// The signature does not cover the body ("UNSIGNED-PAYLOAD"); for services that allow it over TLS, which also
        /// protects the body.
        case unsigned
        /// The body is sent in chunks of the given length, each signed separately; for S3, and bodies of known length.
        ///
        /// A chunk is in memory until it is sent; its length is 8 KiB to 16 MiB.
        case chunked(ByteCount = .kibibytes(64))
    }

    /// The region, such as "us-east-1".
    public let region: String
    /// The service's short name, such as "s3" or "execute-api".
    public let service: String
    /// The way in which signatures cover bodies.
    public let payload: Payload
    private let credentials: @Sendable () async throws -> AWSCredentials
    private let now: @Sendable () -> Date
    private let offsets = ClockOffsets()

    /// Creates an authenticator with keys that may change.
    ///
    /// - Parameters:
    ///   - region: The region, such as "us-east-1".
    ///   - service: The service's short name, such as "s3".
    ///   - payload: The way in which signatures cover bodies; automatic unless given.
    ///   - now: Returns the time; the machine's time unless given.
    ///   - credentials: Returns the keys. Called for each attempt, and concurrently for many attempts, so it should
    ///     cache them. An error that it throws ends the transfer.
    public init(
        region: String, service: String, payload: Payload = .automatic,
        now: @escaping @Sendable () -> Date = { Date() },
        credentials: @escaping @Sendable () async throws -> AWSCredentials
    ) {
        self.region = region
        self.service = service
        self.payload = payload
        self.now = now
        self.credentials = credentials
    }

    /// Signs and sends the request, and once more by the server's clock when a wrong clock caused a refusal.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that the chosen payload cannot sign, `.bodyFailed` when
    ///   its source fails during reading, and the errors of transfers; the error of the closure that provides the keys.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        let target = try request.target()
        guard !request.fields.contains(.authorization), !target.isPresigned else { return try await next(request) }
        let used = offsets[target.origin]
        let response = try await next(try await signed(request))
        guard [.forbidden, .badRequest].contains(response.head.status), !request.body.isConsumed,
            !target.isCleartext,
            let server = response.head.fields[.date].flatMap({ HTTPDate($0) }),
            offsets.learn(target.origin, server: server, own: HTTPDate(now()), used: used)
        else { return response }
        await response.discard()
        return try await next(try await signed(request))
    }

    /// Returns a copy of a request with a signature in its fields, for sending it by other means.
    ///
    /// - Parameter request: The request; its own `Authorization` field is replaced.
    /// - Throws: As ``authenticate(_:context:next:)`` does.
    public func signed(_ request: Request) async throws -> Request {
        let target = try request.target()
        let keys = try await keys()
        let scope = scope(for: target)
        let key = try scope.key(keys.secretAccessKey)
        let payload = try await hashed(request.body, target)
        var signed = request.withoutCompression
        signed.fields.remove(.authorization)
        signed.fields["X-Amz-Date"] = scope.time
        if let token = keys.sessionToken { signed.fields["X-Amz-Security-Token"] = token }
        if isS3 || payload.isPlaceholder { signed.fields["X-Amz-Content-SHA256"] = payload.text }
        if let chunks = payload.chunks {
            let codings = signed.fields[.contentEncoding].map { "aws-chunked,\($0)" }
            signed.fields[.contentEncoding] = codings ?? "aws-chunked"
            signed.fields["X-Amz-Decoded-Content-Length"] = String(chunks.length)
        }
        let canonical = CanonicalRequest(
            method: request.method.rawValue, target: target, rule: rule, fields: signed.fields, payload: payload.text)
        let signature = try scope.signature(of: canonical, key: key)
        signed.fields[.authorization] =
            "\(SigV4Scope.algorithm) Credential=\(keys.accessKeyID)/\(scope.text), "
            + "SignedHeaders=\(canonical.signedNames), Signature=\(signature)"
        if let chunks = payload.chunks {
            signed.body = chunks.body(of: request.body, scope: scope, key: key, seed: signature)
        }
        return signed
    }

    // MARK: Parts

    /// Whether paths of the service are object keys, and the service requires the hash of the body in a field.
    var isS3: Bool { ["s3", "s3-object-lambda", "s3-outposts", "s3express"].contains(service) }

    var rule: CanonicalRequest.PathRule { isS3 ? .verbatim : .normalised }

    func keys() async throws -> AWSCredentials {
        let keys = try await credentials()
        if keys.accessKeyID.isEmpty || keys.secretAccessKey.isEmpty {
            throw NetworkError(
                invalid: .credentials, "The AWS credentials have no access key or no secret key.",
                hint: "Check the source of the credentials, for instance environment variables.")
        }
        return keys
    }

    func scope(for target: RequestTarget) -> SigV4Scope {
        let date = HTTPDate(seconds: HTTPDate(now()).seconds + offsets[target.origin])
        return SigV4Scope(date, region: region, service: service)
    }
}

extension SigV4Signature: CustomStringConvertible, CustomReflectable {
    /// Region and service, without keys.
    public var description: String { "SigV4Signature(\(region.escapingControls), \(service.escapingControls))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Interceptor where Self == SigV4Signature {
    /// Signs requests for Amazon Web Services with permanent keys.
    ///
    /// - Parameters:
    ///   - credentials: The keys.
    ///   - region: The region, such as "us-east-1".
    ///   - service: The service's short name, such as "s3".
    ///   - payload: The way in which signatures cover bodies; automatic unless given.
    public static func awsSigV4(
        _ credentials: AWSCredentials, region: String, service: String, payload: SigV4Signature.Payload = .automatic
    ) -> SigV4Signature {
        SigV4Signature(region: region, service: service, payload: payload) { credentials }
    }

    /// Signs requests for Amazon Web Services with keys that may change.
    ///
    /// - Parameters:
    ///   - region: The region, such as "us-east-1".
    ///   - service: The service's short name, such as "s3".
    ///   - payload: The way in which signatures cover bodies; automatic unless given.
    ///   - credentials: Returns the keys for each attempt.
    public static func awsSigV4(
        region: String, service: String, payload: SigV4Signature.Payload = .automatic,
        credentials: @escaping @Sendable () async throws -> AWSCredentials
    ) -> SigV4Signature {
        SigV4Signature(region: region, service: service, payload: payload, credentials: credentials)
    }
}

extension RequestTarget {
    /// The origin (RFC 6454 §6.2).
    fileprivate var origin: String { "\(scheme.rawValue)://\(authority)" }

    /// Whether the query has a signature of this kind.
    fileprivate var isPresigned: Bool {
        query?.split(separator: "&").contains { $0.hasPrefix("X-Amz-Signature=") } ?? false
    }
}
