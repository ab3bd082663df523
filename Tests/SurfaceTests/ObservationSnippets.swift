// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// Snippets of the doc comments about observers, logs, traces and retries, word for word.

// Request/RequestTags.swift
func snippetOfTags(_ request: inout Request) {
    enum Screen: Request.Tag { typealias Value = String }
    request.tags[Screen.self] = "checkout"
}

// Request/Request+Curl.swift
func snippetOfCurl(_ request: Request) {
    print(request.curlDescription)
    // curl 'https://api.example.com/photos?page=<redacted>' \
    //   --header 'Accept: application/json' \
    //   --compressed
}

// Session/ForEachConcurrent.swift
func snippetOfForEach(_ urls: [String], _ session: Session, _ store: @escaping @Sendable (Data) -> Void) async throws {
    try await urls.forEachConcurrent(limit: 4) { url in
        try await store(session.data(for: Request(url)).0)
    }
    let pages = try await urls.mapConcurrent(limit: 4) { try await session.data(for: Request($0)).0 }
    print(pages.count)
}

func snippetOfForEach(_ lines: AsyncStream<String>, _ upload: @escaping @Sendable (String) async throws -> Void)
    async throws
{
    try await lines.forEachConcurrent(limit: 8) { line in try await upload(line) }
}

private func handle(_ request: Request) async throws {}

// Interceptors/TraceContext.swift
func snippetOfTraceContext(_ request: Request) async throws {
    let incoming = TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    try await TraceContext.$current.withValue(incoming ?? .random()) {
        try await handle(request)
    }
}

// Interceptors/TraceInterceptor.swift
func snippetOfTraceInterceptor() {
    let session = Session(interceptors: [TraceInterceptor { span in print(span) }])
    _ = session
}

// Interceptors/LoggingInterceptor.swift
func snippetOfLogging() {
    let session = Session(interceptors: [LoggingInterceptor(.fields, showingQueryOf: ["page"])])
    // #1 → GET https://example.com/list?page=2&token=<redacted> {Accept: application/json}
    // #1 ← 200 OK GET https://example.com/list?page=2&token=<redacted> in 12 ms, 1.2 KiB {Content-Type: …}
    _ = session
}

// Session/SessionEvent.swift
func snippetOfRecorder() {
    struct Accounts: Session.Recorder {
        let write: @Sendable (String, TransferMetrics) -> Void

        func record(_ end: TransferEvent) {
            if case .metrics(let metrics) = end.kind { write(end.url, metrics) }
        }
    }

    let session = Session(observers: [Accounts { url, metrics in print(url, metrics) }])
    _ = session
}
