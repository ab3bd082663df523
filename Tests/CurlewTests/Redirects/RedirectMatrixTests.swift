// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Redirects, RFC 9110 §15.4", .timeLimit(.minutes(5)))
struct RedirectMatrixTests {
    /// One parsed row of the table.
    struct Row: Sendable, CustomTestStringConvertible {
        enum Outcome: Sendable {
            case next(method: String, url: String, content: Content)
            case result
            case error(String)
        }

        /// The fields in order, and whether there is a body.
        struct Content: Sendable {
            var fields = HeaderFields()
            var hasBody = false

            init(_ text: some StringProtocol) throws {
                hasBody = text.hasSuffix("+b")
                for letter in text.prefix(while: { $0 != "+" }) where letter != "-" {
                    fields.append(try #require(RedirectMatrix.fields[letter]), "value \(letter)")
                }
            }
        }

        let testDescription: String
        let request: Request
        let head: ResponseHead
        let policy: RedirectPolicy
        let outcome: Outcome

        init(_ line: Substring) throws {
            testDescription = String(line)
            let columns = line.split(separator: " | ").map(String.init)
            try #require(columns.count == 8)
            let content = try Content(columns[4])
            request = Request(
                Method(columns[2]), columns[3], fields: content.fields, body: content.hasBody ? .text("body") : .none)
            var fields: HeaderFields = ["Server": "s"]
            for value in Self.locations(columns[6]) { fields.append("location", value) }
            head = ResponseHead(status: Status(try #require(Int(columns[1]))), fields: fields)
            policy = try #require(Self.policies[columns[5]])
            outcome = try Self.outcome(columns[7])
        }

        private static let policies: [String: RedirectPolicy] = [
            "follow": .follow(), "down": .follow(allowingDowngrade: true), "none": .never, "same": .sameOrigin(),
            "keep": .follow().withholding("x-tenant"),
        ]

        /// A URL of 8192 bytes.
        private static let full = "http://a/" + String(repeating: "y", count: 8183)

        private static func outcome(_ text: String) throws -> Outcome {
            let words = text.split(separator: " ").map(String.init)
            switch words[0] {
            case "result": return .result
            case "error": return .error(words[1])
            default:
                let url = words[1] == "(full)" ? full : words[1]
                return .next(method: words[0], url: url, content: try Content(words[2]))
            }
        }

        private static func locations(_ text: String) -> [String] {
            let words = text.split(separator: " ").map(String.init)
            switch words[0] {
            case "(none)": return []
            case "(empty)": return [""]
            case "(long)": return [full + "y"]
            case "(full)": return [full]
            case "(same)": return [words[1], words[1]]
            case "(two)": return [words[1], words[2]]
            default:
                let characters: [Character: Character] = ["␣": " ", "␉": "\t", "␀": "\0"]
                return [String(text.map { characters[$0] ?? $0 })]
            }
        }
    }

    @Test func matrixHasManyUniqueRows() {
        #expect(RedirectMatrix.rows.count >= 190)
        #expect(Set(RedirectMatrix.rows).count == RedirectMatrix.rows.count)
    }

    @Test(arguments: RedirectMatrix.rows)
    func redirectMatchesMatrixRow(line: Substring) async throws {
        let row = try Row(line)
        let target = try row.request.validated()
        var next: Request?
        var failure: NetworkError?
        do throws(NetworkError) {
            next = try await row.policy.next(after: row.request, target: target, row.head)
        } catch {
            failure = error
        }
        switch row.outcome {
        case .result: #expect(next == nil && failure == nil)
        case .error(let kind):
            #expect(failure?.kind.rawValue == kind && failure?.phase == .receiving && next == nil)
            #expect(failure?.response == row.head && failure?.request?.url == row.request.url)
            #expect(failure?.hint?.isEmpty == false)
        case .next(let method, let url, let content):
            let sent = try #require(next)
            let proposal = try RedirectRules.proposal(for: row.request, target: target, row.head, withholding: [])
            #expect(failure == nil)
            #expect(sent.method.rawValue == method)
            #expect(sent.url == url)
            #expect(sent.fields == content.fields)
            #expect(sent.body.isNone == !content.hasBody)
            #expect(proposal?.request.body.isNone == !content.hasBody)
            #expect(try sent.validated().text.utf8.count <= 8192)
        }
    }
}
