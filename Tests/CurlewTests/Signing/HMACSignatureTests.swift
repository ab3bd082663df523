// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// HMAC signatures of bodies, signatures made by closures, and their verification by receivers.
@Suite(.timeLimit(.minutes(5)))
struct HMACSignatureTests {
    /// RFC 4231 §4: key, message, and the codes with SHA-256, SHA-384 and SHA-512.
    private static let cases: [(key: [UInt8], message: [UInt8], codes: [HMACAlgorithm: String])] = [
        (
            [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8),
            [
                .sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                .sha384:
                    "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
                .sha512:
                    "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
            ]
        ),
        (
            Array("Jefe".utf8), Array("what do ya want for nothing?".utf8),
            [
                .sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                // RFC 2202 §3.
                .sha1: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            ]
        ),
    ]

    @Test func testVectorsAreReproduced() throws {
        for (key, message, codes) in Self.cases {
            for (algorithm, code) in codes {
                #expect(try DigestValue.hmac(algorithm, key: key, of: message).hexadecimal == code)
            }
        }
        let none = try DigestValue.hmac(key: [UInt8](), of: "".utf8)
        #expect(none.hexadecimal == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
        #expect(try DigestValue.hmac(key: AnySequence([UInt8(1)]), of: AnySequence([UInt8(2)])).bytes.count == 32)
    }

    @Test func digestValuesAreReadAsHexAndBase64() {
        let value = DigestValue(bytes: [0, 0xAB, 0xFF])
        #expect(value.hexadecimal == "00abff" && value.base64 == "AKv/")
        #expect(DigestValue(hexadecimal: "00ABff") == value && DigestValue(base64: "AKv/") == value)
        for text in ["0", "0g", "00 1", "+1", "é0"] { #expect(DigestValue(hexadecimal: text) == nil) }
        #expect(DigestValue(base64: "*") == nil)
        #expect(value != DigestValue(bytes: [0, 0xAB, 0xFE]) && value != DigestValue(bytes: [0, 0xAB]))
        #expect(DigestValue(bytes: []) == DigestValue(bytes: []))
    }

    @Test func everyReplayableBodyIsSigned() async throws {
        let server = try MockServer { _ in .text("fine") }
        let pattern = PatternBody(seed: 2, length: 150_000)
        let file = try ScratchFile(pattern.bytes)
        let signature = HMACSignature(key: "It's a Secret".utf8, field: "X-Hub-Signature-256", prefix: "sha256=")
        for body in [
            .bytes(pattern.bytes), .file(file.path), .stream(ChunkSource(body: pattern), canReplay: true), .none,
        ] as [RequestBody] {
            var request = Request(.post, server.url("/"), body: body)
            request.interceptors = [signature]
            _ = try await Session { $0.http.compression = .gzip(above: 0) }.data(for: request)
            let sent = try #require(server.requests.last)
            let value = try #require(sent.field("X-Hub-Signature-256"))
            #expect(sent.body == (body.isNone ? [] : pattern.bytes))
            #expect(signature.isValid(value, of: sent.body))
            #expect(!signature.isValid(value, of: sent.body + [0]))
        }
        var once = Request(.post, server.url("/"), body: .stream(ChunkSource(body: pattern)))
        once.interceptors = [signature]
        let error = try await networkError { try await Session().data(for: once) }
        #expect(error.kind == .invalidRequest && error.hint?.contains("replayed") == true)
    }

    /// GitHub's own example ("Validating webhook deliveries").
    @Test func receiverVerifiesSignatures() throws {
        let signature = HMACSignature(key: "It's a Secret to Everybody".utf8, prefix: "sha256=")
        let body = Array("Hello, World!".utf8)
        let code = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        #expect(try signature.value(of: body) == "sha256=" + code)
        #expect(signature.isValid("sha256=" + code, of: body))
        #expect(signature.isValid("sha256=" + code.uppercased(), of: body))
        for value in ["", code, "sha1=" + code, "sha256=", "sha256=" + code.dropLast(2), "sha256=x\(code.dropFirst())"]
        {
            #expect(!signature.isValid(value, of: body), "\(value)")
        }
        let base64 = HMACSignature(key: [1], algorithm: .sha512, encoding: .base64)
        #expect(base64.isValid(try base64.value(of: body), of: body))
        #expect(!base64.isValid(try signature.value(of: body), of: body))
    }

    @Test func signingClosureIsCalledForEachAttempt() async throws {
        let server = try MockServer { _ in .text("fine") }
        server.on("POST", "/", inOrder: [.text("busy", status: 503), .text("fine")])
        let signature: BodySignature = .signing { request, body, context in
            let time = context.attempts
            let code = try await body.hmac(key: "key".utf8, after: "\(time).")
            let all = try await body.bytes(upTo: 5)
            let digest = try await body.digest(.sha512)
            #expect(body.canBeSigned && all == Array("hello".utf8) && digest.bytes.count == 64)
            return [
                "X-Signature": "t=\(time),v1=\(code.hexadecimal)", "X-Gone": nil, "X-Method": request.method.rawValue,
            ]
        }
        var request = Request(
            .post, server.url("/"), fields: ["X-Gone": "1", .idempotencyKey: "k"], body: .text("hello"))
        request.interceptors = [signature]
        _ = try await Session { $0.retry = RetryPolicy(limit: 1, backoff: .none) }.data(for: request)
        let expected = try (0...1).map { time in
            "t=\(time),v1=\(try DigestValue.hmac(key: "key".utf8, of: "\(time).hello".utf8).hexadecimal)"
        }
        #expect(server.requests.map { $0.field("X-Signature") } == expected)
        #expect(server.requests.allSatisfy { $0.field("X-Gone") == nil && $0.field("X-Method") == "POST" })
    }

    @Test func signableBodyBytesAreLimited() async throws {
        let file = try ScratchFile([1, 2, 3])
        #expect(try await SignableBody(.file(file.path)).bytes() == [1, 2, 3])
        for body in [RequestBody.file(file.path), .bytes([1, 2, 3])] {
            let error = try await networkError { try await SignableBody(body).bytes(upTo: 2) }
            #expect(error.kind == .invalidRequest)
        }
        #expect(!SignableBody(.stream(ChunkSource(body: PatternBody(seed: 1, length: 1)))).canBeSigned)
    }

    @Test func descriptionsHideTheKey() {
        let signature: HMACSignature = .hmac(key: "SECRET".utf8, field: "X-S")
        #expect("\(signature)" == "HMACSignature(X-S, sha256, key: <redacted>)")
        var dumped = ""
        dump(signature, to: &dumped)
        #expect(!dumped.contains("83") && !dumped.contains("SECRET"))
    }

    @Test(arguments: ["X-Signature", "X-Hub-Signature-256", "Acme-Signature"] as [HeaderName])
    func descriptionsHideSignatureFields(field: HeaderName) {
        let fields: HeaderFields = [field: "sha256=757107ea"]
        #expect("\(fields)" == "\(field): <redacted>")
    }

    /// The session does not respond to challenges of SPNEGO and NTLM; it returns the response.
    @Test(arguments: ["Negotiate", "NTLM", "Negotiate, NTLM"])
    func negotiateAndNTLMChallengesAreReturned(challenge: String) async throws {
        let server = try MockServer { _ in .text("who?", status: 401).field("WWW-Authenticate", challenge) }
        let (data, head) = try await Session().data(for: Request(server.url("/")))
        #expect(head.status == .unauthorized && data == Data("who?".utf8))
        #expect(server.requestCount == 1 && server.requests[0].field("Authorization") == nil)
    }
}
