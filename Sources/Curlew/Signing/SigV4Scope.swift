// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a signature of version 4 is good for: a day, a region and a service, at one time.
struct SigV4Scope {
    static let algorithm = "AWS4-HMAC-SHA256"
    /// SHA-256 of nothing.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// Such as "20150830T123600Z".
    let time: String
    let region: String
    let service: String

    init(_ date: HTTPDate, region: String, service: String) {
        time = date.basicISO8601
        self.region = region
        self.service = service
    }

    private var day: String { String(time.prefix { $0 != "T" }) }

    /// Such as "20150830/us-east-1/iam/aws4_request".
    var text: String { "\(day)/\(region)/\(service)/aws4_request" }

    /// The key for this day, region and service, which the secret cannot be found from.
    func key(_ secret: String) throws(NetworkError) -> [UInt8] {
        var key = Array("AWS4\(secret)".utf8)
        for part in [day, region, service, "aws4_request"] {
            key = try HMACAlgorithm.sha256.code(key: key, of: part.utf8)
        }
        return key
    }

    /// The signature of a request, in hexadecimal digits.
    func signature(of request: CanonicalRequest, key: [UInt8]) throws(NetworkError) -> String {
        let hash = try HMACAlgorithm.sha256.digest(of: request.text.utf8).hexadecimal
        return try sign([Self.algorithm, time, text, hash], key)
    }

    /// The signature of a chunk of a body, in hexadecimal digits.
    ///
    /// - Parameters:
    ///   - chunk: Its bytes; none for the last.
    ///   - previous: The signature of the chunk before it, of the request for the first.
    ///   - key: The key for this scope.
    func signature(of chunk: [UInt8], after previous: String, key: [UInt8]) throws(NetworkError) -> String {
        let hash = try HMACAlgorithm.sha256.digest(of: chunk).hexadecimal
        return try sign([Self.algorithm + "-PAYLOAD", time, text, previous, Self.emptyHash, hash], key)
    }

    private func sign(_ lines: [String], _ key: [UInt8]) throws(NetworkError) -> String {
        try HMACAlgorithm.sha256.code(key: key, of: lines.joined(separator: "\n").utf8).hexadecimal
    }
}
