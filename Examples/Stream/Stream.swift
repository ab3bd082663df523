// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-stream` runs: bodies that are received and sent element by element. Stage.swift has the
// server, which sends them in chunks of seven bytes.

import Curlew
import CurlewTesting
import CurlewXML
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
            await documents(api, &stage)
            await uploads(api, &stage)
            await forms(api, &stage)
            stage.end()
        } catch {
            print("error:", error)
            exit(1)
        }
    }

    // MARK: Server-sent events

    private static func events(_ api: JSONClient, _ stage: inout Stage) async {
        let server = stage.server
        await stage.show("events that resume", "7 8 9 10, asked from -, 2, 3, 3, 4") {
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
        await stage.show("a loop that ends early", "user 3, and no transfer is active") {
            var names: [String] = []
            for try await user in api.stream("users", using: .ndjson(User.self)) {
                names.append(user.name)
                if names.count == 3 { break }
            }
            try await api.session.idle()
            return "\(names.last ?? "no user"), and no transfer is active"
        }
        await stage.show(
            "a line that is wrong", "ada, then: Line 2: Decoding User failed (column 1): nothing for the key “name”."
        ) {
            var names: [String] = []
            do throws(NetworkError) {
                for try await user in api.stream("broken", using: .ndjson(User.self)) { names.append(user.name) }
                return "no error"
            } catch {
                return "\(names.joined()), then: \(error.message)"
            }
        }
        await stage.show("a JSON sequence", "ada, without the cut element") {
            var names: [String] = []
            for try await user in api.stream("journal", using: .jsonSequence(User.self, malformed: .skip)) {
                names.append(user.name)
            }
            return names.joined(separator: " ") + ", without the cut element"
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

    // MARK: XML

    private static func documents(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("XML events", "2 entries, the first is “Alps & sea”") {
            var (entries, texts) = (0, [String]())
            for try await event in api.stream("feed.xml", using: .xmlEvents) {
                switch event {
                case .startElement(let tag): if tag.name.local == "entry" { entries += 1 }
                case .text(let text): texts.append(text)
                default: break
                }
            }
            return "\(entries) entries, the first is “\(texts.first ?? "")”"
        }
        await stage.show("an XML document", "Snow, by XPath") {
            let feed = try await api.get("feed.xml", using: .xmlDocument)
            let title = try feed.string("//a:entry[2]/a:title", namespaces: ["a": "http://www.w3.org/2005/Atom"])
            return "\(title), by XPath"
        }
    }

    // MARK: Bodies of several parts

    private static func forms(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("a form with a file", "title 100 %, image 100 %, the server says thanks") {
            let form = MultipartForm {
                MultipartForm.Part("title", "Alps")
                MultipartForm.Part("image", bytes: [UInt8](repeating: 7, count: 300_000), filename: "alps.png")
            }
            let upload = api.transfer(.post, "photos", .multipart(form), using: .text)
            var done: [String] = []
            for await progress in upload.progress {
                done = form.progress(at: progress).map { "\($0.name ?? "") \(Int(100 * ($0.fraction ?? 0))) %" }
            }
            return "\(done.joined(separator: ", ")), the server says \(try await upload.value)"
        }
        await stage.show("parts of a response", "text/plain: first, text/html: <p>second</p>") {
            var parts: [String] = []
            for try await element in api.stream("report", using: .multipart) {
                switch element {
                case .part(let fields): parts.append("\(fields[.contentType] ?? ""): ")
                case .bytes(let chunk): parts[parts.count - 1] += String(decoding: chunk, as: UTF8.self)
                case .end: break
                }
            }
            return parts.joined(separator: ", ")
        }
    }

    // MARK: Uploads

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
