// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Canonical requests of AWS Signature Version 4, compared with AWS's documentation.
@Suite struct CanonicalRequestTests {
    private func canonical(
        _ url: String, rule: CanonicalRequest.PathRule = .normalised, fields: HeaderFields = [:]
    ) throws -> [String] {
        let request = CanonicalRequest(
            method: "GET", target: try RequestTarget(url), rule: rule, fields: fields, payload: SigV4Scope.emptyHash)
        return request.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test(arguments: [
        ("", "/", "/"), ("/", "/", "/"), ("/a/../b/./c", "/b/c", "/a/../b/./c"), ("//", "/", "//"),
        ("/a//b/", "/a/b/", "/a//b/"), ("/..", "/", "/.."), ("/a/..", "/", "/a/.."), ("/a%20b", "/a%2520b", "/a%20b"),
        ("/a b", "/a%2520b", "/a%20b"), ("/ሴ", "/%25E1%2588%25B4", "/%E1%88%B4"), ("/a(b)", "/a%28b%29", "/a%28b%29"),
        ("/a%2fb%7e", "/a%252fb%257e", "/a%2Fb~"), ("/a+b", "/a%2Bb", "/a%2Bb"), ("/-._~", "/-._~", "/-._~"),
    ])
    func canonicalPathsAreNormalisedOrVerbatim(path: String, normalised: String, verbatim: String) throws {
        #expect(try canonical("https://host" + path)[1] == normalised)
        #expect(try canonical("https://host" + path, rule: .verbatim)[1] == verbatim)
    }

    @Test(arguments: [
        ("", ""), ("b=2&a=1", "a=1&b=2"), ("a=2&a=1&a=", "a=&a=1&a=2"), ("a&b", "a=&b="), ("a-b=1&a=2", "a=2&a-b=1"),
        ("a=b=c", "a=b%3Dc"), ("a=%3d%7E", "a=%3D~"), ("a=1+2", "a=1%202"), ("&&a=1&", "a=1"),
        ("a=/?:@", "a=%2F%3F%3A%40"),
        ("B=1&a=1", "B=1&a=1"), ("ሴ=bar", "%E1%88%B4=bar"), ("a=%zz", "a=%25zz"),
    ])
    func canonicalQueriesAreSortedAndEscaped(query: String, canonical expected: String) throws {
        #expect(try canonical("https://host/?" + query)[2] == expected)
    }

    @Test func canonicalFieldsAreSortedAndTrimmed() throws {
        let fields: HeaderFields = [
            "X-Two": "b", "My-Header": "  a   b\t\tc ", "x-two": "a", "User-Agent": "u", "Expect": "100-continue",
            "Authorization": "old", "Connection": "close", "TraceParent": "00", "X-Empty": "",
        ]
        let lines = try canonical("http://Host:8080/", fields: fields)
        #expect(
            lines[3...] == [
                "host:host:8080", "my-header:a b c", "x-empty:", "x-two:b,a", "",
                "host;my-header;x-empty;x-two", SigV4Scope.emptyHash,
            ])
        #expect(try canonical("http://host:80/")[3] == "host:host")
        #expect(try canonical("https://host:80/")[3] == "host:host:80")
        #expect(try canonical("https://[::1]:443/")[3] == "host:[::1]")
    }

    // MARK: Examples published by AWS

    private func scope(_ time: String, _ service: String) throws -> SigV4Scope {
        let scope = SigV4Scope(try #require(HTTPDate(time)), region: "us-east-1", service: service)
        #expect(scope.text == "\(scope.time.prefix(8))/us-east-1/\(service)/aws4_request")
        return scope
    }

    /// Method, query and signature of cases of the AWS test suite for Signature Version 4.
    @Test(arguments: [
        ("GET", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ("GET", "?Param2=value2&Param1=value1", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    ])
    func awsTestSuiteSignaturesAreReproduced(method: String, query: String, signature: String) throws {
        let scope = try scope("Sun, 30 Aug 2015 12:36:00 GMT", "service")
        let request = CanonicalRequest(
            method: method, target: try RequestTarget("https://example.amazonaws.com/" + query), rule: .normalised,
            fields: ["X-Amz-Date": scope.time], payload: SigV4Scope.emptyHash)
        let key = try scope.key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        #expect(try scope.signature(of: request, key: key) == signature)
        #expect(request.signedNames == "host;x-amz-date")
    }

    private let keys = AWSCredentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

    private func signature() throws -> SigV4Signature {
        let date = try #require(HTTPDate("Fri, 24 May 2013 00:00:00 GMT"))
        let keys = keys
        return SigV4Signature(
            region: "us-east-1", service: "s3", now: { Date(timeIntervalSince1970: Double(date.seconds)) },
            credentials: { keys })
    }

    /// "Signature Calculations for the Authorization Header", Amazon S3 API reference: GET Object.
    @Test func s3GetObjectExample() async throws {
        let request = Request("https://examplebucket.s3.amazonaws.com/test.txt", fields: [.range: "bytes=0-9"])
        let signed = try await signature().signed(request)
        let scope = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
        let expected = """
            AWS4-HMAC-SHA256 Credential=\(scope), SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
            Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41
            """
        #expect(signed.fields[.authorization] == expected)
        #expect(signed.fields["x-amz-content-sha256"] == SigV4Scope.emptyHash)
        #expect(signed.fields["x-amz-date"] == "20130524T000000Z")
    }

    /// "Authenticating Requests: Using Query Parameters", Amazon S3 API reference.
    @Test func s3PresignedURLExampleIsReproduced() async throws {
        let url = try await signature().presignedURL(
            for: "https://examplebucket.s3.amazonaws.com/test.txt", expiresIn: .seconds(86_400))
        let expected = """
            https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
            &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
            &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
            &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404
            """
        #expect(url.absoluteString == expected)
    }

    /// "Transferring Payload in Multiple Chunks", Amazon S3 API reference: 65 KiB of "a" in chunks of 64 KiB.
    @Test func s3SignedChunksExampleIsReproduced() async throws {
        let scope = try scope("Fri, 24 May 2013 00:00:00 GMT", "s3")
        let body = [UInt8](repeating: UInt8(ascii: "a"), count: 66_560)
        let chunks = SignedChunks(
            body: .bytes(body), size: 65_536, scope: scope, key: try scope.key(keys.secretAccessKey),
            seed: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")
        var all: [[UInt8]] = []
        for try await chunk in chunks { all.append(chunk) }
        let heads = [
            "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n",
            "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n",
            "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n",
        ]
        let parts = [body[..<65_536], body[65_536...], []]
        let expected = zip(heads, parts).map { head, part in Array(head.utf8) + Array(part) + [0x0D, 0x0A] }
        #expect(all == expected)
        #expect(all.joined().count == 66_824 && SignedChunks.length(of: 66_560, size: 65_536) == 66_824)
    }

    @Test func signedChunksLengthIsComputed() async throws {
        let scope = try scope("Fri, 24 May 2013 00:00:00 GMT", "s3")
        for length in [1, 8191, 8192, 8193, 16_384, 100_000] {
            let body = [UInt8](repeating: 7, count: length)
            var count = 0
            let chunks = SignedChunks(body: .bytes(body), size: 8192, scope: scope, key: [1], seed: "")
            for try await chunk in chunks { count += chunk.count }
            #expect(SignedChunks.length(of: Int64(length), size: 8192) == Int64(count))
        }
        #expect(SignedChunks.length(of: .max, size: 8192) == nil)
    }

    @Test func basicISO8601TimesAreWritten() {
        #expect(HTTPDate(seconds: 784_111_777).basicISO8601 == "19941106T084937Z")
        #expect(HTTPDate(seconds: -1).basicISO8601 == "19691231T235959Z")
    }
}
