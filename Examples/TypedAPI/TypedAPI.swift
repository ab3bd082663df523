// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-api` runs: a small typed API client and its use. Start with Notes.swift, the client. This
// file has the calls, and Stage.swift has the server.

import Curlew
import CurlewTesting
import Glibc

@main
struct TypedAPI {
    static func main() async {
        do {
            var stage = try Stage()
            let api = Client(try BaseURL(stage.server.url("/v1")), session: Session())
            await values(Notes(api: api), &stage)
            await refusals(api, &stage)
            await bodies(api, &stage)
            await choices(api, &stage)
            stage.end()
        } catch {
            print("error:", error)
            exit(1)
        }
    }

    private static func values(_ notes: Notes, _ stage: inout Stage) async {
        await stage.show("a value", "Alps") { try await notes.note(1).title }
        await stage.show("a query", "1 note") { try await "\(notes.notes(tagged: "travel").count) note" }
        await stage.show("JSON out and in", "note 2: Milk") {
            let note = try await notes.post(Draft(title: "Milk"))
            return "note \(note.id): \(note.title)"
        }
        await stage.show("a form", "logged in") {
            try await notes.logIn("ada", password: "s&cret")
            return "logged in"
        }
        await stage.show("an optional", "nothing yet") { try await notes.latest()?.title ?? "nothing yet" }
        await stage.show("one of several", "2 answers: a list, then “Nothing.”") {
            guard case .notes = try await notes.find("snow & ice") else { return "no list" }
            guard case .text(let text) = try await notes.find("sand") else { return "no text" }
            return "2 answers: a list, then “\(text)”"
        }
    }

    private static func refusals(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("a problem of our own", "422: title must not be empty") {
            do throws(APIError<Invalid>) {
                return try await api.send(CreateNote(draft: Draft(title: ""))).title
            } catch {
                let fields = error.problem?.fields.map { "\($0) \($1)" } ?? []
                return "\(error.network.response?.status.code ?? 0): " + fields.joined(separator: ", ")
            }
        }
        await stage.show("problem details", "Locked by grace (https://notes.example/locked)") {
            do throws(APIError<ProblemDetails>) {
                try await api.send(DeleteNote(id: 1))
                return "deleted"
            } catch {
                let owner = error.problem?.extensions["by"]?.asString
                return "\(error.problem?.title ?? "?") by \(owner ?? "?") (\(error.problem?.type ?? "?"))"
            }
        }
    }

    private static func bodies(_ api: JSONClient, _ stage: inout Stage) async {
        let (picture, server) = (PatternBody(seed: 2, length: 8 << 20), stage.server)
        await stage.show("progress of an upload", "100 % of 8 MiB, every byte arrived") {
            let task = Notes(api: api).attach(picture.bytes, to: 1)
            var last: TransferProgress?
            for await progress in task.progress { last = progress }
            let (percent, length) = (Int((last?.fraction ?? 0) * 100), ByteCount(last?.sent ?? 0))
            let isWhole = try await task.value.sha256 == picture.sha256
            return "\(percent) % of \(length), \(isWhole ? "every byte" : "something else") arrived"
        }
        await stage.show("a stream that ends early", "ended after a mebibyte, and no transfer is active") {
            var length = 0
            for try await chunk in api.stream("export") {
                length += chunk.count
                if length >= 1 << 20 { break }
            }
            try await api.session.idle()
            return "ended after a mebibyte, and no transfer is active"
        }
        await stage.show("a format of our own", "Alps, packed") {
            let packed = Client(api.base, requests: Packed(), responses: Packed(), session: api.session)
            let note: Note = try await packed.post("echo", .encoding(Note(id: 1, title: "Alps", tags: [])))
            return note.title + (server.requests.last?.bodyText.hasPrefix("bplist00") == true ? ", packed" : "")
        }
    }

    private static func choices(_ api: JSONClient, _ stage: inout Stage) async {
        await stage.show("no type at all", "travel") {
            let value = try await api.request(.get, "notes/1", parameters: [:])
            return value?["tags"]?[0]?.asString ?? "no tag"
        }
        await stage.show("options of one call", "a 404 is fine, 8 bytes are the limit") {
            let fine = try await api.get("notes/9", options: .statuses([.notFound]), using: .head).status
            do {
                _ = try await api.get("notes/1", options: [.responseLimit(.bytes(8)), .label("probe")], using: .bytes)
                return "no limit"
            } catch NetworkError.Kind.bodyTooLarge {
                return "a \(fine.code) is fine, 8 bytes are the limit"
            }
        }
        await stage.show("pins and http", "no such client: the base URL is http") {
            let key = try Certificate.PublicKeyHash(sha256: [UInt8](repeating: 7, count: 32))
            let pins = try PinnedPublicKeys([key], withoutBackup: "an example")
            do throws(NetworkError) {
                return "\(try Client(api.base, trust: pins))"
            } catch {
                return error.kind == .invalidRequest ? "no such client: the base URL is http" : error.message
            }
        }
    }
}
