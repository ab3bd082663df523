// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite("PlannedURLCache")
struct PlannedURLCacheTests {
    /// The strings of each pair are canonically equivalent, so `==` returns true, but servers compare bytes.
    @Test(arguments: [
        ("/caf\u{E9}", "/cafe\u{301}"), ("/a\u{37E}b", "/a;b"), ("/\u{212A}", "/K"),
        ("/q\u{307}\u{323}", "/q\u{323}\u{307}"),
    ]) func canonicallyEquivalentURLsAreSentAsWritten(one: String, other: String) async throws {
        #expect(one == other)
        for paths in [[one, other, one], [other, one, other]] {
            let server = try MockServer { _ in .text("x") }
            let session = Session()
            for path in paths { _ = try await session.data(for: Request(server.origin + path)) }
            #expect(server.requests.map(\.target) == paths.map { encoded($0) })
        }
    }

    private func encoded(_ path: String) -> String {
        path.utf8.map { $0 < 0x80 ? String(Unicode.Scalar($0)) : "%" + String($0, radix: 16, uppercase: true) }.joined()
    }

    @Test func cachedURLsAreFoundAndNotConfused() {
        var urls = PlannedURLCache()
        let made = (0..<1000).map { number in
            let url = PlannedURL("http://localhost/\(number)", host: "localhost", port: 80, isSecure: false)
            urls.keep(url, for: url.text)
            #expect(urls.known(url.text) === url)
            return url
        }
        // Some entries replaced others, and a lookup never returns the wrong entry.
        for url in made { if let found = urls.known(url.text) { #expect(found === url) } }
        #expect(urls.known("http://localhost/1000") == nil)
    }
}
