// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewAuth

/// Signatures of random requests, compared with those of botocore, the library that AWS's own tools sign with.
@Suite(.enabledIfInstalled(.botocore), .peer(.botocore), .timeLimit(.minutes(5)))
struct BotocoreTests {
    /// One request, described for both libraries.
    private struct Case: Codable {
        var kind: String
        var method: String
        /// The URL that Curlew signs; `strict` is the same URL with as many escapes as possible.
        var url: String
        var strict: String
        var fields: [[String]] = []
        var body: [UInt8] = []
        var token: String?
        var region: String
        var service: String
        var seconds: Int64
        var expires = 0
    }

    private struct Answer: Decodable {
        var url: String
        var fields: [String: String]
    }

    private static let accessKeyID = "AKIDEXAMPLE"
    private static let secretAccessKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

    private static let script = #"""
        import base64, datetime, json, sys
        from botocore import auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        class Frozen(datetime.datetime):
            @classmethod
            def utcnow(cls): return moment

        class Clock: datetime = Frozen

        auth.datetime = Clock
        signers = {
            "plain": auth.SigV4Auth, "s3": auth.S3SigV4Auth, "query": auth.SigV4QueryAuth,
            "s3query": auth.S3SigV4QueryAuth,
        }
        answers = []
        for case in json.load(open(sys.argv[1])):
            moment = datetime.datetime.utcfromtimestamp(case["seconds"])
            credentials = Credentials("\#(accessKeyID)", "\#(secretAccessKey)", case.get("token"))
            extra = {"expires": case["expires"]} if case["kind"].endswith("query") else {}
            signer = signers[case["kind"]](credentials, case["service"], case["region"], **extra)
            request = AWSRequest(method=case["method"], url=case["strict"], data=bytes(case["body"]))
            for name, value in case["fields"]: request.headers[name] = value
            signer.add_auth(request)
            answers.append({"url": request.url, "fields": {name.lower(): value for name, value in request.headers.items()}})
        json.dump(answers, sys.stdout)
        """#

    private func answers(to cases: [Case]) async throws -> [Answer] {
        let script = try ScratchFile(Self.script.utf8)
        let file = try ScratchFile(try JSONEncoder().encode(cases))
        defer { withExtendedLifetime((script, file)) {} }
        let data = try await ShellCommand.output("/usr/bin/python3 -B '\(script.path)' '\(file.path)'")
        let answers = try JSONDecoder().decode([Answer].self, from: data)
        try #require(answers.count == cases.count)
        return answers
    }

    private func signature(_ item: Case) -> SigV4Signature {
        SigV4Signature(
            region: item.region, service: item.service, now: { Date(timeIntervalSince1970: Double(item.seconds)) },
            credentials: {
                AWSCredentials(
                    accessKeyID: Self.accessKeyID, secretAccessKey: Self.secretAccessKey, sessionToken: item.token)
            })
    }

    private func request(_ item: Case) -> Request {
        var request = Request(Method(item.method), item.url, body: item.body.isEmpty ? .none : .bytes(item.body))
        for field in item.fields { request.fields.append(HeaderName(field[0]), field[1]) }
        return request
    }

    @Test(arguments: ["plain", "s3"]) func signaturesEqualBotocores(kind: String) async throws {
        var chance = SeededChance(kind == "s3" ? 71 : 72)
        let cases = (0..<150).map { _ in item(kind, &chance) }
        for (item, answer) in zip(cases, try await answers(to: cases)) {
            let signed = try await signature(item).signed(request(item)).fields
            #expect(signed[.authorization] == answer.fields["authorization"], "\(item)")
            for name in ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"] {
                #expect(signed[HeaderName(name)] == answer.fields[name], "\(name) of \(item)")
            }
        }
    }

    @Test(arguments: ["query", "s3query"]) func presignedURLsEqualBotocores(kind: String) async throws {
        var chance = SeededChance(kind == "query" ? 73 : 74)
        let cases = (0..<60).map { _ in
            var item = item(kind, &chance)
            (item.url, item.body) = (item.strict, [])
            item.expires = Int.random(in: 1...604_800, using: &chance)
            return item
        }
        for (item, answer) in zip(cases, try await answers(to: cases)) {
            let url = try await signature(item).presignedURL(
                for: request(item), expiresIn: .seconds(item.expires))
            // botocore writes the default port into the URL, but signs without it.
            #expect(url.absoluteString == answer.url.replacing("//h:443/", with: "//h/"), "\(item)")
        }
    }

    // MARK: Random requests

    private static let letters: [String] = [
        "a", "Z", "0", "-", ".", "_", "~", "!", "$", "'", "(", ")", "*", ",", ";", "=", ":", "@", "é", "👴", " ", "%",
        "/",
    ]
    /// The characters that paths and queries may contain without escapes.
    private static let loose = ByteSet.unreserved.union(ByteSet("!$'()*,;:@"))

    private func text(_ chance: inout SeededChance) -> String {
        (0..<Int.random(in: 1...6, using: &chance)).compactMap { _ in Self.letters.randomElement(using: &chance) }
            .joined()
    }

    private func item(_ kind: String, _ chance: inout SeededChance) -> Case {
        let isS3 = kind.hasPrefix("s3")
        let hosts = ["example.amazonaws.com", "h:8443", "h:443", "[::1]:9000", "[2001:db8::1]"]
        let origin = "https://\(hosts.randomElement(using: &chance) ?? "h")"
        var (path, strictPath) = ("", "")
        for _ in 0..<Int.random(in: 0...4, using: &chance) {
            let segment =
                Int.random(in: 0..<4, using: &chance) > 0
                ? text(&chance) : [".", "..", ""].randomElement(using: &chance)
            path += "/" + (segment ?? "").percentEncoded(keeping: Self.loose)
            // botocore's S3 signers expect the fully escaped key; the others sign the path as sent.
            strictPath += "/" + (segment ?? "").percentEncoded(keeping: isS3 ? .unreserved : Self.loose)
        }
        if path.isEmpty { (path, strictPath) = ("/", "/") }
        var (query, strictQuery) = ([String](), [String]())
        for index in 0..<Int.random(in: 0...4, using: &chance) {
            // botocore's presigned URLs keep one value for each name.
            let name = kind.hasSuffix("query") ? "n\(index)" + text(&chance) : text(&chance)
            let value = Bool.random(using: &chance) ? text(&chance) : ""
            query.append("\(name.percentEncoded(keeping: Self.loose))=\(value.percentEncoded(keeping: Self.loose))")
            strictQuery.append(
                "\(name.percentEncoded(keeping: .unreserved))=\(value.percentEncoded(keeping: .unreserved))")
        }
        let mark = query.isEmpty ? "" : "?"
        var item = Case(
            kind: kind, method: ["GET", "PUT", "POST", "DELETE", "PATCH"].randomElement(using: &chance) ?? "GET",
            url: origin + path + mark + query.joined(separator: "&"),
            strict: origin + strictPath + mark + strictQuery.joined(separator: "&"),
            region: "eu-central-1", service: isS3 ? "s3" : "execute-api",
            seconds: Int64.random(in: 0...4_000_000_000, using: &chance))
        item.token = Bool.random(using: &chance) ? "To/ken+\(UInt64.random(in: 0...999, using: &chance))==" : nil
        item.fields = fields(&chance)
        if Bool.random(using: &chance) { item.body = (0..<50).map { _ in UInt8.random(in: 0...255, using: &chance) } }
        return item
    }

    private func fields(_ chance: inout SeededChance) -> [[String]] {
        let names = [
            "X-Amz-Meta-One", "x-custom", "Content-Type", "X-CUSTOM", "Range", "User-Agent", "Accept", "If-Match",
        ]
        let values = ["a", "  two   words ", "a,b", "\"q  q\"", "text/plain; charset=utf-8", "é", "", "\ttab\t\tbed"]
        return (0..<Int.random(in: 0...5, using: &chance)).compactMap { _ in
            guard let name = names.randomElement(using: &chance), let value = values.randomElement(using: &chance)
            else {
                return nil
            }
            return [name, value]
        }
    }
}
