// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// The snippets about interceptors and events, word for word; parameters provide the values that a snippet assumes.

// Transfer/Interceptor.swift
struct Signature: Interceptor {
    let key: String

    func intercept(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        var request = request
        request.fields["X-Signature"] = key
        return try await next(request)
    }
}

func snippetOfContext(_ request: Request, _ context: Interception.Context, _ next: Interception.Next) async throws
    -> IncomingResponse
{
    guard context.attempts == 0 else { return try await next(request) }
    return try await next(Request(.head, request.url))
}

func snippetOfClosureInterceptor() -> Request {
    var request: Request = "https://example.com/"
    request.interceptors = [
        .intercept { request, context, next in
            let response = try await next(request)
            print(context.elapsed, response.head.status)
            return response
        }
    ]
    return request
}

// Transfer/Next.swift
func snippetOfNext(_ request: Request, _ renewed: Request, _ next: Interception.Next) async throws -> IncomingResponse {
    let response = try await next(request)
    guard response.head.status == .unauthorized else { return response }
    await response.discard()
    return try await next(renewed)
}

// Transfer/IncomingResponse.swift
func snippetOfIncomingResponse(_ request: Request) -> IncomingResponse {
    let cached = IncomingResponse(ResponseHead(status: .ok), body: Data("{}".utf8), to: request)
    return cached
}

// Transfer/TransferEvent.swift
func snippetOfEvents(_ transfer: Transfer<Data>) async {
    for await event in transfer.events {
        print(event.elapsed, event.attempt, event)
    }
}

// Session/SessionEvent.swift
func snippetOfActivity(_ session: Session) async -> Int {
    var active: Set<UInt64> = []
    for await case .transfer(let event) in session.events {
        if event.isLast { active.remove(event.transfer) } else { active.insert(event.transfer) }
    }
    return active.count
}

func snippetOfObserver() -> Session {
    struct Failures: Session.Observer {
        func observe(_ event: Session.Event) async {
            if case .transfer(let event) = event, case .finished(let error?) = event.kind { print(error) }
        }
    }

    let session = Session(observers: [Failures()])
    return session
}

// Transfer/IncomingResponse+Peek.swift
func snippetOfPeek() -> ClosureInterceptor {
    .intercept { request, _, next in
        let (start, response) = try await next(request).peek(.kibibytes(1))
        if start.starts(with: "<".utf8) { print("markup") }
        return response
    }
}
