// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The scope of a signature of version 4: a day, a region and a service, and the time of the signature.
struct SigV4Scope {
    static let algorithm = "AWS4-HMAC-SHA256"
    /// The SHA-256 digest of zero bytes.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// The time in the form "20150830T123600Z".
    let time: String
    let region: String
    let service: String

    init(_ date: HTTPDate, region: String, service: String) {
        time = date.basicISO8601
        self.region = region
        self.service = service
    }

    private var day: String { String(time.prefix { $0 != "T" }) }

    /// The scope in the form "20150830/us-east-1/iam/aws4_request".
    var text: String { "\(day)/\(region)/\(service)/aws4_request" }

    /// Returns the key for this day, region and service; the secret cannot be derived from it.
    func key(_ secret: String) throws(NetworkError) -> [UInt8] {
        var key = Array("AWS4\(secret)".utf8)
        for part in [day, region, service, "aws4_request"] {
            key = try HMACAlgorithm.sha256.code(key: key, of: part.utf8)
        }
        return key
    }

    /// Returns the signature of a request, in hexadecimal digits.
    func signature(of request: CanonicalRequest, key: [UInt8]) throws(NetworkError) -> String {
        let hash = try HMACAlgorithm.sha256.digest(of: request.text.utf8).hexadecimal
        return try sign([Self.algorithm, time, text, hash], key)
    }

    /// Returns the signature of a chunk of a body, in hexadecimal digits.
    ///
    /// - Parameters:
    ///   - chunk: The bytes of the chunk; empty for the last chunk.
    ///   - previous: The signature of the previous chunk; for the first chunk, the signature of the request.
    ///   - key: The key for this scope.
    func signature(of chunk: [UInt8], after previous: String, key: [UInt8]) throws(NetworkError) -> String {
        let hash = try HMACAlgorithm.sha256.digest(of: chunk).hexadecimal
        return try sign([Self.algorithm + "-PAYLOAD", time, text, previous, Self.emptyHash, hash], key)
    }

    private func sign(_ lines: [String], _ key: [UInt8]) throws(NetworkError) -> String {
        try HMACAlgorithm.sha256.code(key: key, of: lines.joined(separator: "\n").utf8).hexadecimal
    }
}
