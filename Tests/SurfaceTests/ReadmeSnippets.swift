// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

// Every snippet of README.md, word for word, so that it compiles as users compile it. SnippetTests keeps both alike.

/// README.md, the top.
func readmeTop() async throws {
    let session = Session.shared
    let (data, head) = try await session.data(for: "https://example.com/users/42")
    print(head.status, data.count)

    let transfer = session.transfer("https://example.com/archive.tar")
    for try await element in transfer.stream {
        switch element {
        case .head(let head): print(head.status)
        case .progress(let progress): print(progress.fraction ?? 0)
        case .bytes(let chunk): print(chunk.count)
        default: break
        }
    }
}

/// README.md, requests.
func readmeRequests() async throws {
    var request = Request(.post, "https://example.com/notes", body: .text("remember the milk"))
    request.fields[.contentType] = "text/plain; charset=utf-8"
    request.options.timeouts = Timeouts(connect: .seconds(5), idle: .seconds(20), total: .seconds(60))
    let (answer, head) = try await Session.shared.data(for: request)
    print(answer.count, head.status)
}

/// README.md, errors.
func readmeErrors() async {
    do {
        let (data, _) = try await Session.shared.data(for: "https://example.com/")
        print(data.count)
    } catch {
        switch error.kind {
        case .timedOut: print("too slow in phase", error.phase)
        case .cancelled: break
        default: print(error.detailedDescription)
        }
    }
}

/// README.md, something around every request.
func readmeInterceptors() -> Session {
    let token = "…"
    let session = Session(interceptors: [
        LoggingInterceptor(),
        .adapt { $0.fields[.authorization] = "Bearer \(token)" },
    ])
    return session
}

/// README.md, a private certificate authority.
func readmeTrust(pem: String) -> Session {
    let session = Session(trust: CustomRoots(pem: pem))
    return session
}
