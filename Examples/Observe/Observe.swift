// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Interceptors, redirects, tracing, logs and events, with a local server.
//     swift run Observe

import Curlew
import CurlewTesting
import FoundationEssentials
import Glibc

/// Retries a request while the server responds that it is busy, at most three times.
struct RetryWhenBusy: Interceptor {
    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        for _ in 0..<3 {
            let response = try await next(request)
            guard response.head.status == .serviceUnavailable else { return response }
            await response.discard()
        }
        return try await next(request)
    }
}

/// Prints the events of every transfer, indented by attempt, with the number of active transfers.
actor Watcher: Session.Observer {
    private var active: Set<UInt64> = []

    func observe(_ event: Session.Event) {
        guard case .transfer(let event) = event else { return print("session:", event) }
        if event.isLast { active.remove(event.transfer) } else { active.insert(event.transfer) }
        print(
            "  #\(event.transfer)", String(repeating: "│ ", count: event.attempt), event.kind, "·", active.count,
            "active")
    }
}

@main
struct Observe {
    static func main() async {
        do {
            try await run()
        } catch {
            print((error as? NetworkError)?.detailedDescription ?? "\(error)")
            exit((error as? NetworkError)?.exitCode ?? 1)
        }
    }

    private static func run() async throws {
        let server = try MockServer()
        server.on("GET", "/old", .redirect(to: "/new?token=secret"))
        server.on("GET", "/new", .json(#"{"found":true}"#))
        server.on("GET", "/busy", inOrder: [.text("later", status: 503), .text("now")])
        server.on("GET", "/elsewhere", .redirect(to: "http://example.invalid/", status: 301))

        let session = Session(
            interceptors: [
                LoggingInterceptor { print("log:", $0) }, RetryWhenBusy(), TraceInterceptor { print("span:", $0) },
            ],
            observers: [Watcher()])

        print("A redirect, with its history:")
        let trace = TraceContext.random()
        try await TraceContext.$current.withValue(trace) {
            let (data, head) = try await session.data(for: Request(server.url("/old")))
            for hop in head.history { print("  redirected by", hop) }
            print("  gave", String(decoding: data, as: UTF8.self))
        }

        print("A redirect that a closure stops:")
        var careful = Request(server.url("/elsewhere"))
        careful.options.redirects = .custom { $0.isSameOrigin ? .follow : .stop }
        print("  status", try await session.data(for: careful).1.status.code)

        print("The request as a curl command:")
        careful.fields[.authorization] = "Bearer secret"
        print(careful.curlDescription)

        print("Four concurrent requests, one of them retried:")
        let origin = server.origin
        try await ["/busy", "/new", "/new", "/new"].forEachConcurrent(limit: 2) { path in
            _ = try await session.data(for: Request(origin + path))
        }
        try await session.idle()
        try await session.shutdown()
    }
}
