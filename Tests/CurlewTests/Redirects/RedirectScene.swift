// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// The ways to consume a response; each has to follow redirects in the same way.
enum Taking: String, CaseIterable, Sendable {
    case data, value, stream, bytes, started, watched, observed

    /// The body and head that a transfer returned.
    struct Taken {
        var body = Data()
        /// The head, or nil if the API returns only bytes.
        var head: ResponseHead?
    }

    func callAsFunction(_ request: Request, by session: Session) async throws -> Taken {
        let transfer = session.transfer(request)
        switch self {
        case .data:
            let (body, head) = try await session.data(for: request)
            return Taken(body: body, head: head)
        case .stream:
            let record = try await StreamRecord(transfer)
            #expect(record.order.count { $0 == "head" } == 1, "\(record.order)")
            return Taken(body: record.body, head: record.head)
        case .bytes:
            var taken = Taken()
            for try await chunk in transfer.bytes { taken.body.append(contentsOf: chunk) }
            return taken
        case .value: break
        case .started: transfer.start()
        case .watched:
            var last: TransferProgress?
            for await progress in transfer.progress {
                #expect(progress.elapsed >= last?.elapsed ?? .zero)
                #expect(last?.isFinished != true)
                last = progress
            }
            if Task.isCancelled { break }
            #expect(transfer.state == .finished)
            #expect(transfer.currentProgress.isFinished == last?.isFinished)
        case .observed:
            var last: TransferEvent?
            for await event in transfer.events {
                #expect(last?.isLast != true)
                last = event
            }
            #expect(last?.isLast == true)
        }
        let response = try await transfer.response()
        #expect(transfer.state == .finished)
        return Taken(body: response.value, head: response.head)
    }
}

extension MockServer {
    /// The method and path of each request.
    var asked: [String] { requests.map { "\($0.method) \($0.path)" } }
}

/// A server with one redirect, and gates that suspend the transfer between the two requests.
struct RedirectScene: Sendable {
    let server: MockServer
    let session: Session
    /// `reached` opens when the redirect policy is called; the policy waits until `onward` opens.
    let reached = Gate()
    let onward = Gate()
    /// Whether the task of the redirect policy was cancelled.
    let wasCancelled = Lock(false)

    init(
        answer: MockResponse = .text("there"), _ configure: (inout Session.Configuration) -> Void = { _ in }
    ) throws {
        server = try MockServer { _ in answer }
        server.on(nil, "/1", .redirect(to: "/2", status: 307))
        var configuration = Session.Configuration()
        configuration.redirects = .custom { [reached, onward, wasCancelled] _ in
            reached.open()
            if await !onward.wait() { wasCancelled.withLock { $0 = true } }
            return .follow
        }
        configure(&configuration)
        session = Session(configuration)
    }

    var request: Request { Request(server.url("/1")) }

    /// Shuts the session down, and waits until it refuses new transfers.
    func shutDown(_ mode: Session.Shutdown) async -> Task<Void, any Error> {
        let end = Task { try await session.shutdown(mode) }
        while true {
            let late = session.transfer(Request(server.url("/late")))
            late.pause()
            late.start()
            _ = await session.transfers
            if late.state == .finished { return end }
            late.cancel()
        }
    }
}
