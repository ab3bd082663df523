// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// A scraper of a shop whose pages need a login.
struct Shop {
    let api: JSONClient
    private let account: String

    /// - Parameter jar: The cookies, which decide whether a login is needed.
    init(base: BaseURL, jar: CookieJar) {
        api = Client(base, session: Session(cookies: jar))
        account = "\(base)account"
    }

    /// Logs in if necessary, and returns the titles of all pages.
    func titles(user: String, password: String) async throws(NetworkError) -> [String] {
        // The session cookie is for all paths, so the jar has it for the account, too.
        if api.session.cookies?.cookie(named: "sid", for: account) == nil { try await logIn(user, password) }
        var titles: [String] = []
        var next: Int? = 1
        while let number = next {
            let page = try await api.get("pages/\(number)", using: .text)
            titles.append(text(of: "title", in: page) ?? "?")
            next = text(of: "next", in: page).flatMap { Int($0) }
        }
        return titles
    }

    /// Fetches the form, whose hidden field and cookie belong together, and sends it; the response redirects to the
    /// account.
    private func logIn(_ user: String, _ password: String) async throws(NetworkError) {
        let form = try await api.get("login", using: .text)
        let token = text(of: "token", in: form) ?? ""
        try await api.post("login", .form(["user": user, "password": password, "token": token]))
    }

    /// Returns the text of the first element with a name.
    private func text(of element: String, in page: String) -> String? {
        guard let start = page.firstRange(of: "<\(element)>"),
            let end = page[start.upperBound...].firstRange(of: "</\(element)>")
        else { return nil }
        return String(page[start.upperBound..<end.lowerBound])
    }
}
