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
        var status: Int32 = 1
        do {
            var stage = try Stage()
            print("The first run logs in:")
            try await run(&stage, file, expecting: 6)
            print("\nThe second run reads the cookies from the file and is still logged in:")
            try await run(&stage, file, expecting: 3)
            status = stage.end()
        } catch {
            print("error:", error)
        }
        try? FileManager.default.removeItem(atPath: file)
        exit(status)
    }

    /// Reads all pages with the cookies of a file, and shows what the jar did.
    ///
    /// - Parameter requests: The expected number of requests.
    private static func run(_ stage: inout Stage, _ file: String, expecting requests: Int) async throws {
        let before = stage.server.requests.count
        let jar = try await CookieJar(file: file)
        let shop = Shop(base: try BaseURL(stage.server.url("/")), jar: jar)
        let titles = try await shop.titles(user: "anna", password: "sesame")
        stage.check("pages: " + titles.joined(separator: ", "), titles == ["Apples", "Pears", "Plums"])
        stage.check(
            "requests: \(stage.server.requests.count - before)", stage.server.requests.count - before == requests)
        try await shop.api.session.shutdown()
        for cookie in jar.cookies { print("  the jar has", cookie) }
        for refusal in jar.refusals { stage.note(refusal) }
        for line in jar.skippedLines { print("  skipped", line) }
    }
}
