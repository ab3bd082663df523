// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Signs requests for Amazon Web Services, and what speaks like them: AWS Signature, version 4.
///
/// Each attempt is signed anew, with its own time. Signed are method, path, query, body, `Host` and the request's fields
/// but for those that may change on the way (`User-Agent`, `Expect`, tracing fields and those of one connection); fields
/// of a session's configuration are not, so `X-Amz-…` fields belong to requests or clients. Bodies are not compressed on
/// their way. A request with an `Authorization` of its own, or with a signature in its query, goes as it is.
///
/// When a server refuses with 403 or 400 and its `Date` is more than four minutes and at most a day from ours, the request is
/// signed once more by the server's clock, and so are later ones to that origin (of at most 64). Over plain http no clock is
/// learned, except from this machine: anyone on the network could write the `Date`, and get signatures for later.
///
/// ```swift
/// let bucket = Client("https://photos.s3.eu-central-1.amazonaws.com").with {
///     $0.auth = .awsSigV4(credentials, region: "eu-central-1", service: "s3")
/// }
/// ```
public struct SigV4Signature: Authenticator {
    /// How the body takes part in the signature.
    public enum Payload: Sendable, Hashable {
        /// By its digest where it can be read twice. One that can be read only once is left out for S3 over TLS, and
        /// refused elsewhere.
        case automatic
        /// By its digest, always; a body that can be read only once is refused.
        case signed
        /// Not at all ("UNSIGNED-PAYLOAD"): for services that allow it, over TLS, which protects it as well.
        case unsigned
        /// In chunks of that many bytes, each signed as it is sent; for S3, and bodies of known length. A chunk is in
        /// memory until it is sent; 8 KiB to 16 MiB.
        case chunked(ByteCount = .kibibytes(64))
    }

    /// The region, such as "us-east-1".
    public let region: String
    /// The service's short name, such as "s3" or "execute-api".
    public let service: String
    /// How bodies take part.
    public let payload: Payload
    private let credentials: @Sendable () async throws -> AWSCredentials
    private let now: @Sendable () -> Date
    private let offsets = ClockOffsets()

    /// A signature with keys that may change.
    ///
    /// - Parameters:
    ///   - region: The region, such as "us-east-1".
    ///   - service: The service's short name, such as "s3".
    ///   - payload: How bodies take part; automatic unless given.
    ///   - now: The time; the machine's unless given.
    ///   - credentials: Gives the keys. Called for each attempt, for many at once: it keeps what it can. What it throws
    ///     ends the transfer.
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

    /// Signs the request and passes it on; once more by the server's clock when that is why it was refused.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that the chosen payload cannot sign, `.bodyFailed` when its
    ///   source fails while it is read, and whatever ends transfers. What the closure that gives keys throws.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        let target = try request.target()
        guard !request.fields.contains(.authorization), !target.isPresigned else { return try await next(request) }
        let used = offsets[target.origin]
        let response = try await next(try await signed(request))
        guard [.forbidden, .badRequest].contains(response.head.status), !request.body.isSpent,
            !target.isReadableByOthers,
            let server = response.head.fields[.date].flatMap({ HTTPDate($0) }),
            offsets.learn(target.origin, server: server, own: HTTPDate(now()), used: used)
        else { return response }
        await response.discard()
        return try await next(try await signed(request))
    }

    /// A copy of a request with a signature in its fields, for whoever sends it by other means.
    ///
    /// - Parameter request: The request; an `Authorization` that it has is replaced.
    /// - Throws: As ``authenticate(_:context:next:)`` does.
    public func signed(_ request: Request) async throws -> Request {
        let target = try request.target()
        let keys = try await keys()
        let scope = scope(for: target)
        let key = try scope.key(keys.secretKey)
        let payload = try await hashed(request.body, target)
        var signed = request.sentAsItIs
        signed.fields.remove(.authorization)
        signed.fields["X-Amz-Date"] = scope.time
        if let token = keys.sessionToken { signed.fields["X-Amz-Security-Token"] = token }
        if isS3 || payload.isNoHash { signed.fields["X-Amz-Content-SHA256"] = payload.text }
        if let chunks = payload.chunks {
            let codings = signed.fields[.contentEncoding].map { "aws-chunked,\($0)" }
            signed.fields[.contentEncoding] = codings ?? "aws-chunked"
            signed.fields["X-Amz-Decoded-Content-Length"] = String(chunks.length)
        }
        let canonical = CanonicalRequest(
            method: request.method.rawValue, target: target, rule: rule, fields: signed.fields, payload: payload.text)
        let signature = try scope.signature(of: canonical, key: key)
        signed.fields[.authorization] =
            "\(SigV4Scope.algorithm) Credential=\(keys.accessKey)/\(scope.text), "
            + "SignedHeaders=\(canonical.signedNames), Signature=\(signature)"
        if let chunks = payload.chunks {
            signed.body = chunks.body(of: request.body, scope: scope, key: key, seed: signature)
        }
        return signed
    }

    // MARK: Parts

    /// Services whose paths are keys, and that want to be told the hash.
    var isS3: Bool { ["s3", "s3-object-lambda", "s3-outposts", "s3express"].contains(service) }

    var rule: CanonicalRequest.PathRule { isS3 ? .verbatim : .normalised }

    func keys() async throws -> AWSCredentials {
        let keys = try await credentials()
        if keys.accessKey.isEmpty || keys.secretKey.isEmpty {
            throw NetworkError(
                invalid: .credentials, "The AWS credentials have no access key or no secret key.",
                hint: "Look at where they come from, perhaps variables of the environment.")
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
    /// Signs requests for Amazon Web Services with keys that last.
    ///
    /// - Parameters:
    ///   - credentials: The keys.
    ///   - region: The region, such as "us-east-1".
    ///   - service: The service's short name, such as "s3".
    ///   - payload: How bodies take part; automatic unless given.
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
    ///   - payload: How bodies take part; automatic unless given.
    ///   - credentials: Gives the keys for each attempt.
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
