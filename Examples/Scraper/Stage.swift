// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// The local server of the shop, and the output.
struct Stage {
    let server: MockServer
    private var unexpected = 0
    private var refusals: Set<String> = []

    init() throws {
        server = try MockServer()
        server.on("GET", "/login") { _ in
            .text("<form><token>7f3a</token></form>").field("Set-Cookie", "form=7f3a; Path=/login; HttpOnly")
        }
        server.on("POST", "/login") { request in
            guard request.bodyText == "password=sesame&token=7f3a&user=anna", request.field("Cookie") == "form=7f3a"
            else { return .status(403) }
            // The client follows the redirect to the account, as after most logins.
            return .redirect(to: "/account", status: 303)
                .field("Set-Cookie", "sid=31d4; Path=/; HttpOnly; SameSite=Lax")
                .field("Set-Cookie", "form=; Path=/login; Max-Age=0")
        }
        server.on("GET", "/account") { request in
            // The jar stores the theme, and refuses each of the others for a different reason.
            Self.page("Anna", for: request).field("Set-Cookie", "theme=dark; Path=/; Max-Age=86400")
                .field("Set-Cookie", "track=1; Domain=com").field("Set-Cookie", "ads=1; Domain=ads.example")
                .field("Set-Cookie", "__Host-id=1; Path=/").field("Set-Cookie", "widget=1; SameSite=None")
                .field("Set-Cookie", "big=" + String(repeating: "x", count: 5000))
        }
        let titles = ["Apples", "Pears", "Plums"]
        for (index, title) in titles.enumerated() {
            let next = index + 1 < titles.count ? "<next>\(index + 2)</next>" : ""
            server.on("GET", "/pages/\(index + 1)") { Self.page(title, next, for: $0) }
        }
    }

    /// Returns a page for a request with the session cookie; other requests are redirected to the login.
    private static func page(_ title: String, _ rest: String = "", for request: RecordedRequest) -> MockResponse {
        let isKnown = request.field("Cookie")?.split(separator: "; ").contains("sid=31d4") == true
        return isKnown ? .text("<title>\(title)</title>\(rest)") : .redirect(to: "/login")
    }

    /// Prints a result.
    mutating func check(_ line: String, _ isExpected: Bool) {
        if !isExpected { unexpected += 1 }
        print("  " + line + (isExpected ? "" : " <- unexpected"))
    }

    /// Prints why the jar has not stored a cookie.
    mutating func note(_ refusal: Cookie.Refusal) {
        refusals.insert(refusal.reason.rawValue)
        print("  \(refusal)")
    }

    /// Prints a summary, and returns the status of the program: 0 if all results are as expected.
    func end() -> Int32 {
        let expected: Set = ["foreignDomain", "brokenPrefix", "insecureSameSiteNone", "tooLong"]
        let isComplete = refusals.isSuperset(of: expected)
        print(
            "\n\(server.requests.count) requests, \(refusals.count) reasons for refusals, \(unexpected) unexpected results"
        )
        return unexpected == 0 && isComplete && server.violations.isEmpty ? 0 : 1
    }
}
