// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-stream` runs: bodies that come, and are sent, element by element. Stage.swift has the
// server, which sends them in pieces of seven bytes. Each further kind of stream is one more function here.

import Curlew
import CurlewTesting
import Glibc

struct User: Codable, Sendable {
    var name: String
}

struct Word: Decodable, Sendable {
    var word: String
}

@main
struct Stream {
    static func main() async {
        do {
            var stage = try Stage()
            let api = Client(try BaseURL(stage.server.url("/")), session: Session())
            await events(api, &stage)
            await values(api, &stage)
            await texts(api, &stage)
            await uploads(api, &stage)
            stage.end()
        } catch {
            print("error:", error)
            exit(1)
        }
    }

    // MARK: Server-sent events

    private static func events(_ api: JSONClient, _ stage: inout Stage) async {
        let server = stage.server
        await stage.show("events that go on", "7 8 9 10, asked from -, 2, 3, 3, 4") {
            var prices: [String] = []
            for try await event in api.eventSource("prices") { prices.append(event.data) }
            let asked = server.requests.map { $0.field("Last-Event-ID") ?? "-" }
            return prices.joined(separator: " ") + ", asked from " + asked.joined(separator: ", ")
        }
        await stage.show("events of one response", "snow, ice") {
            var words: [String] = []
            for try await word in api.stream(.post, "chat", .json(["of": 2]), using: .serverSentEvents(of: Word.self)) {
                words.append(word.word)
            }
            return words.joined(separator: ", ")
        }
    }

    // MARK: JSON

    private static func values(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("NDJSON", "1000 users, the last is user 1000") {
            var (count, last) = (0, "")
            for try await user in api.stream("users", using: .ndjson(User.self)) {
                (count, last) = (count + 1, user.name)
            }
            return "\(count) users, the last is \(last)"
        }
        await stage.show("a loop left early", "user 3, and nothing runs any more") {
            var names: [String] = []
            for try await user in api.stream("users", using: .ndjson(User.self)) {
                names.append(user.name)
                if names.count == 3 { break }
            }
            try await api.session.idle()
            return "\(names.last ?? "nobody"), and nothing runs any more"
        }
        await stage.show("a line that is wrong", "ada, then: Line 2: Decoding User failed: nothing for the key “name”.")
        {
            var names: [String] = []
            do throws(NetworkError) {
                for try await user in api.stream("broken", using: .ndjson(User.self)) { names.append(user.name) }
                return "no error"
            } catch {
                return "\(names.joined()), then: \(error.message)"
            }
        }
        await stage.show("a JSON sequence", "ada, without what was cut") {
            var names: [String] = []
            for try await user in api.stream("journal", using: .jsonSequence(User.self, malformed: .skip)) {
                names.append(user.name)
            }
            return names.joined(separator: " ") + ", without what was cut"
        }
    }

    // MARK: Lines, and decoders over any bytes

    private static func texts(_ api: JSONClient, _ stage: inout Stage) async {
        let url = stage.server.url("/log")
        await stage.show("lines", "first|second||last") {
            var lines: [String] = []
            for try await line in api.stream("log", using: .lines) { lines.append(line) }
            return lines.joined(separator: "|")
        }
        await stage.show("lines of a transfer", "first|second|last") {
            let transfer = api.session.transfer(Request(url))
            var lines: [String] = []
            for try await line in transfer.bytes.decoded(by: .lines(omittingEmpty: true)) { lines.append(line) }
            return lines.joined(separator: "|")
        }
    }

    // MARK: What is sent

    private static func uploads(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("NDJSON both ways", "100 users came back") {
            let users = AsyncStream<User> { continuation in
                for number in 1...100 { continuation.yield(User(name: "user \(number)")) }
                continuation.finish()
            }
            var count = 0
            for try await _ in api.stream(.post, "echo", .ndjson(users), using: .ndjson(User.self)) { count += 1 }
            return "\(count) users came back"
        }
        await stage.show("frames both ways", "5, 0 and 300 bytes") {
            let frames = [5, 0, 300].map { [UInt8](repeating: 7, count: $0) }
            var sizes: [String] = []
            let body = Body.frames(frames, lengthPrefix: .varint)
            for try await frame in api.stream(.post, "echo", body, using: .frames(lengthPrefix: .varint)) {
                sizes.append("\(frame.count)")
            }
            return "\(sizes[0]), \(sizes[1]) and \(sizes[2]) bytes"
        }
    }
}
