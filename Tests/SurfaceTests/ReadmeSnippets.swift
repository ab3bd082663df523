// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

// Every snippet of README.md, word for word, so that it compiles as users compile it. SnippetTests compares both;
// SameNamesTests has the snippet with type aliases.

private struct User: Codable, Sendable { var id: Int, name: String }
private struct Draft: Codable, Sendable { var name: String }

/// README.md, the top.
func readmeTop() async throws {
    let store = try await TransferStore(at: "/var/lib/mirror/transfers")
    if await store.reattach().isEmpty {  // resumes the downloads of a killed process
        try await store.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    }
    for await report in store.reports {
        if report == .drained { break }
        print(report)
    }
}

/// README.md, "Requests and JSON".
private func readmeRequests(_ token: String, _ draft: Draft) async throws {
    let user = try await Session.shared.value(for: "https://api.example.com/users/7", as: User.self)

    let api = Client("https://api.example.com/v1").with { $0.auth = .bearer(token) }
    let friends: [User] = try await api.get("users/\(user.id)/friends", query: ["page": 2])
    try await api.post("users", .encoding(draft), options: .timeout(.seconds(5)))
    print(friends)
}

/// README.md, "Streaming".
private func readmeStreaming(_ api: JSONClient) async throws {
    for try await user in api.stream("users", using: .ndjson(User.self)) { print(user.name) }
}

/// README.md, "TLS and certificate pinning".
func readmePins() throws {
    let bank = try Client("https://pay.example.com", trust: .pinned(keys: ["sha256/…"], backup: "sha256/…"))
    print(bank)
}
