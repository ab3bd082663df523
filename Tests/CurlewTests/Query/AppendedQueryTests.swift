// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

@Suite("Queries added to URLs", .timeLimit(.minutes(5)))
struct AppendedQueryTests {
    @Test(
        "RQ-18, RQ-19: where a query is added to a URL",
        arguments: [
            ("http://h", "q=1", "http://h?q=1"), ("http://h/a", "q=1", "http://h/a?q=1"),
            ("http://h/?a=1", "q=1", "http://h/?a=1&q=1"), ("http://h?", "q", "http://h?q"),
            ("http://h?a&", "q", "http://h?a&&q"), ("http://h#f", "q", "http://h?q#f"),
            ("http://h/?a#f?b", "q", "http://h/?a&q#f?b"), ("http://h/#f?b", "q", "http://h/?q#f?b"),
            ("http://h?#", "q", "http://h?q#"), ("http://h/?#f", "q", "http://h/?q#f"),
            ("http://h/#f", "", "http://h/#f"),
            ("http://h?", "", "http://h?"), ("/ä", "q=%C3%A4", "/ä?q=%C3%A4"), ("", "q", "?q"),
        ])
    func queryIsAppendedToAURL(_ text: String, _ query: String, _ expected: String) {
        #expect(url(text, appending: query) == expected)
    }
}
