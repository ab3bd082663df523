// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Request as a curl command", .timeLimit(.minutes(5)))
struct CurlDescriptionTests {
    private static func make(
        _ method: Curlew.Method, _ path: String = "/", _ fields: HeaderFields = [:], _ body: RequestBody = .none,
        _ change: (inout Request.Options) -> Void = { _ in }
    ) -> Request {
        var request = Request(method, path.hasPrefix("/") ? "http://h" + path : path, fields: fields, body: body)
        request.options.decompression = .off
        change(&request.options)
        return request
    }

    private static let forms: [(Request, String)] = [
        (Request("https://h/a"), "curl https://h/a \\\n  --compressed"),
        (make(.get, "HTTP://H:80/ü?b c"), "curl 'http://h/%C3%BC?b%20c'"),
        (make(.head), "curl http://h/ \\\n  --head"),
        (make(.delete), "curl http://h/ \\\n  --request DELETE"),
        (make(.post), "curl http://h/ \\\n  --request POST \\\n  --data-binary '' \\\n  --header Content-Type:"),
        (make("A B"), "curl http://h/ \\\n  --request 'A B'"),
        (make(.get, "-o/x"), "curl --url -o/x"),
        (make(.get, "/[1]/{a}"), "curl 'http://h/[1]/%7Ba%7D' \\\n  --globoff"),
        (make(.get, "/", ["A": " b\t", "C": " "]), "curl http://h/ \\\n  --header 'A: b' \\\n  --header 'C;'"),
        (make(.get) { $0.connection = .own }, "curl http://h/ \\\n  --http1.1"),
        (
            make(.get) { $0.timeouts = Timeouts(connect: .milliseconds(1500), total: .seconds(7)) },
            "curl http://h/ \\\n  --connect-timeout 1.500 \\\n  --max-time 7"
        ),
        (
            make(.get) { $0.timeouts = Timeouts(connect: .nanoseconds(1), total: .seconds(Int64.max)) },
            "curl http://h/ \\\n  --connect-timeout 0.001"
        ),
        (make(.get) { $0.timeouts = Timeouts(connect: .seconds(-1), total: .zero) }, "curl http://h/"),
        (
            make(.get, "/", ["Range": "bytes=0-1"]) { $0.decompression = nil },
            "curl http://h/ \\\n  --header 'Range: bytes=0-1' \\\n  --header 'Accept-Encoding: identity'"
        ),
        (
            make(.put, "/", ["Content-Type": "text/plain"], .text("@it's")),
            #"curl http://h/ \\#n  --request PUT \\#n  --header 'Content-Type: text/plain' \\#n  --data-raw '@it'\''s'"#
        ),
        (
            make(.put, "/", ["Content-Type": "a/b"], .bytes([0, 0xFF])),
            #"printf '\000\377' | curl http://h/ \\#n  --request PUT \\#n  --header 'Content-Type: a/b' \\#n"#
                + "  --data-binary @-"
        ),
        (
            make(.put, "/", ["Content-Type": "a/b"], .file("/tmp/a b")),
            "curl http://h/ \\\n  --request PUT \\\n  --header 'Content-Type: a/b' \\\n  --data-binary '@/tmp/a b'"
        ),
        (
            make(.put, "/", ["Content-Type": "a/b"], .descriptor(0)),
            "curl http://h/ \\\n  --request PUT \\\n  --header 'Content-Type: a/b' \\\n  --upload-file -"
        ),
        (
            make(.put, "/", ["Content-Type": "a/b"], .descriptor(0, length: 3)),
            "curl http://h/ \\\n  --request PUT \\\n  --header 'Content-Type: a/b' \\\n  --data-binary @-"
        ),
    ]

    @Test(arguments: forms)
    func curlCommandDescribesRequests(_ request: Request, _ command: String) {
        #expect(request.curlDescription(showingSecrets: true) == command)
    }

    @Test(arguments: [
        (Request.ExpectContinue.never, RequestBody.text("abc"), "Expect:"),
        (.always, .text("abc"), "'Expect: 100-continue'"),
        (.above(3), .text("abc"), "'Expect: 100-continue'"), (.above(4), .text("abc"), "Expect:"),
        (.always, .text(""), "Expect:"), (.above(4), .descriptor(0), "'Expect: 100-continue'"),
    ])
    func expectContinuePolicySetsTheExpectHeader(_ policy: Request.ExpectContinue, _ body: RequestBody, _ word: String)
    {
        var request = Request(.post, "http://h/", body: body)
        #expect(!request.curlDescription.contains("Expect"))
        request.options.expectContinue = policy
        #expect(request.curlDescription.contains("--header \(word)"))
        request.fields[.expect] = "100-continue"
        #expect(request.curlDescription.ranges(of: "Expect").count == 1)
    }

    @Test func secretsAreRedacted() {
        var request = Request(
            .post, "https://user:SECRET@h/path?key=SECRET#SECRET",
            fields: [
                .authorization: "Bearer SECRET", "X-API-Key": "SECRET", "Referer": "http://x/?a=SECRET", "A": "b",
            ],
            body: .text("SECRET"))
        let command = #"""
            curl 'https://h/path?key=<redacted>' \
              --request POST \
              --header 'Authorization: <redacted>' \
              --header 'X-API-Key: <redacted>' \
              --header 'Referer: http://x/?a=<redacted>' \
              --header 'A: b' \
              --compressed \
              --data-binary '<redacted: 6 bytes>' \
              --header Content-Type:
            """#
        #expect(request.curlDescription == command)
        #expect(request.curlDescription(showingSecrets: true).ranges(of: "SECRET").count == 6)
        request.body = .file("/home/SECRET")
        #expect(request.curlDescription.contains("--data-binary '<redacted: a file>'"))
        request.url = "no url, SECRET@h"
        request.fields["Broken"] = "a\nb: c"
        let lines = request.curlDescription.split(separator: "\n")
        #expect(lines.dropLast().allSatisfy { $0.hasSuffix(#" \"#) } && lines.count == 10)
    }

    /// Requests that both Curlew and the curl command send.
    private static let sent: [Request] = [
        make(.get, "/a?b=c&d='e'"), make(.head), make(.delete), make(.options), make(.post), make(.patch),
        make("PURGE"),
        make(.get, "/[1]/{a}"), make(.get, "/a/../b/./%2e%2E/"), make(.get, "/ü ö"),
        make(.get, "/", ["A": "it's $HOME `id` !!", "Empty": "", "A": "again", "Accept": "a/b", "User-Agent": "me/1"]),
        make(.get, "/", ["Range": "bytes=0-1"]) { $0.decompression = .automatic },
        make(.get) { $0.decompression = .automatic },
        make(.get, "/", ["Accept-Encoding": "x"]) { $0.decompression = .automatic },
        make(.get) { $0.timeouts = Timeouts(connect: .milliseconds(20_500), total: .seconds(50)) },
        make(.get) { $0.connection = .own },
        make(.post, "/", ["Content-Type": "application/json"], .text(#"{"a": "it's\n $HOME `id` \\ !! é"}"#)),
        make(.put, "/", [:], .text("two\nlines\n")), make(.put, "/", [:], .text("@file")),
        make(.put, "/", [:], .text("")),
        make(.put, "/", [:], .text("carriage\r\nreturn\t'")), make(.post, "/", [:], .bytes(Array(0...255))),
        make(.post, "/", [:], .bytes([UInt8](repeating: 0x27, count: 60_000))),
        make(.post, "/", [:], .bytes([UInt8](repeating: 0x41, count: 200_000))),
        make(.get, "/", [:], .text("a GET with a body")),
        make(.post, "/", [:], .text("x")) { $0.expectContinue = .always },
        make(.post, "/", [:], .bytes([UInt8](repeating: 0x41, count: 1_100_000))) { $0.expectContinue = .never },
    ]

    /// The parts of a recorded request, without the default user agent and in a fixed order.
    private static func essence(_ request: RecordedRequest, of original: Request) -> [String] {
        let isOwn = original.fields.contains(.userAgent)
        let fields = request.fields.filter { isOwn || $0.name.lowercased() != "user-agent" }.map { field in
            guard field.name.lowercased() == "accept-encoding" else { return "\(field.name): \(field.value)" }
            let codings = field.value.split(separator: ",").map { $0.drop(while: { $0 == " " }) }
            return "Accept-Encoding: \(codings.sorted().joined(separator: ", "))"
        }
        return [request.method, request.target, request.version, request.bodySHA256] + fields.sorted()
    }

    @Test(.enabled(if: ShellCommand.isInstalled("curl"), "curl is not installed"), arguments: sent, ["sh", "bash"])
    func curlCommandSendsTheSameRequest(_ request: Request, _ shell: String) async throws {
        let server = try MockServer { _ in .text("fine") }
        var request = request
        request.url = request.url.replacing("http://h/", with: server.url("/"))
        _ = try await Session().data(for: request)
        _ = try await ShellCommand.output(request.curlDescription(showingSecrets: true), shell: shell)
        let records = server.requests
        try #require(records.count == 2)
        #expect(Self.essence(records[1], of: request) == Self.essence(records[0], of: request))
        #expect(server.violations.isEmpty)
    }

    @Test(.enabled(if: ShellCommand.isInstalled("curl"), "curl is not installed"))
    func curlCommandReadsFilesAndStandardInput() async throws {
        let server = try MockServer { _ in .text("fine") }
        let file = try ScratchFile(PatternBody(seed: 1, length: 300_000).bytes)
        let stream = AsyncStream<[UInt8]> { $0.finish() }
        let bodies: [RequestBody] = [.file(file.path), .descriptor(0), .descriptor(0, length: 9), .stream(stream)]
        for body in bodies {
            let request = Request(.put, server.url("/"), body: body)
            let command = request.curlDescription(showingSecrets: true)
            _ = try await ShellCommand.output("(\(command)) < '\(file.path)'")
        }
        #expect(server.digests == Array(repeating: PatternBody(seed: 1, length: 300_000).bytes.sha256, count: 4))
        #expect(server.requests.map { $0.field("Transfer-Encoding") } == [nil, "chunked", nil, "chunked"])
        #expect(server.requests.allSatisfy { $0.method == "PUT" && $0.field("Content-Type") == nil })
    }
}
