// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-cookies` runs: a scraper that logs in by a form, follows redirects, keeps its cookies in
// a file, and reads the pages of a shop. Start with Shop.swift, the scraper. This file runs it twice, and Stage.swift
// has the server.

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc

@main
struct Scraper {
    static func main() async {
        let file = FileManager.default.temporaryDirectory.appending(path: "curlew-scraper-\(getpid()).txt").path
        defer { try? FileManager.default.removeItem(atPath: file) }
        do {
            var stage = try Stage()
            print("The first run logs in:")
            try await run(&stage, file, expecting: 6)
            print("\nThe second run reads the cookies from the file and is still logged in:")
            try await run(&stage, file, expecting: 3)
            stage.end()
        } catch {
            print("error:", error)
            exit(1)
        }
    }

    /// Reads all pages with the cookies of a file, and shows what the jar did.
    ///
    /// - Parameter requests: The expected number of requests.
    private static func run(_ stage: inout Stage, _ file: String, expecting requests: Int) async throws {
        let before = stage.server.requests.count
        let jar = try await CookieJar(file: file)
        let changes = jar.changes
        let shop = Shop(base: try BaseURL(stage.server.url("/")), jar: jar)
        let titles = try await shop.titles(user: "anna", password: "sesame")
        stage.check("pages: " + titles.joined(separator: ", "), titles == ["Apples", "Pears", "Plums"])
        stage.check(
            "requests: \(stage.server.requests.count - before)", stage.server.requests.count - before == requests)
        try await shop.api.session.shutdown()
        // The marker ends the list of changes.
        try jar.set(Cookie("end", "1", host: "end.test"))
        for await change in changes {
            if case .stored(let cookie, _) = change, cookie.name == "end" { break }
            stage.note(change)
        }
        for line in jar.skippedLines { print("  skipped", line) }
    }
}
