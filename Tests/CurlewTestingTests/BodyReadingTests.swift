// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BodyReadingTests {
    private let expecting = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"

    private func server(_ reading: BodyReading) throws -> MockServer {
        let server = try MockServer()
        server.on("POST", "/", reading: reading) { .text($0.bodyText) }
        return server
    }

    @Test func continueIsSentToAWaitingClient() throws {
        let server = try server(.whole)
        let client = try WireClient(server)
        try client.send(expecting)
        #expect(try client.response().status == 100)
        try client.send("body")
        #expect(try client.response().text == "body")
        #expect(server.requests.map(\.expectsContinue) == [true] && server.requests.map(\.sentContinue) == [true])
    }

    @Test func continueIsOmittedIfTheBodyHasArrived() throws {
        let server = try server(.whole)
        let client = try WireClient(server)
        try client.send(expecting + "body")
        #expect(try client.response().status == 200)
        #expect(server.requests.map(\.sentContinue) == [false])
    }

    @Test func continueCanBeWithheld() async throws {
        let server = try server(.whole.withoutContinue())
        let client = try WireClient(server)
        try client.send(expecting)
        #expect(await server.nextRequest()?.expectsContinue == true)
        try client.send("body")
        #expect(try client.response().text == "body")
    }

    @Test func responseWithoutReadingTheBodyClosesTheConnection() throws {
        let server = try MockServer()
        server.on("POST", "/", .text("too large", status: 413), reading: .none)
        let client = try WireClient(server)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        let response = try client.response()
        #expect(response.status == 413 && response.text == "too large" && response.field("Connection") == "close")
        try client.send([UInt8](repeating: 1, count: 900_000))
        #expect(try client.rest() == ([], .fin))
        #expect(server.requests.map(\.bodyLength) == [0] && server.requests.map(\.isBodyComplete) == [false])
    }

    @Test func responseBeforeReadingKeepsTheConnection() throws {
        let server = try MockServer()
        server.on("POST", "/", .text("early"), reading: .afterResponse)
        let client = try WireClient(server)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
        #expect(try client.response().text == "early")
        try client.send("body")
        #expect(try client.exchange("GET", "/next").status == 404)
        #expect(server.requests.map(\.bodyText) == ["body", ""])
    }

    @Test func serverResetsAfterReadingAPrefix() throws {
        let server = try MockServer()
        server.on("POST", "/", .status(200).fault(.reset, at: .start), reading: .prefix(3))
        let client = try WireClient(server)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabcdef")
        #expect(try client.rest() == ([], .reset))
        #expect(server.requests.map(\.bodyText) == ["abc"])
    }

    @Test func readingStallsBeforeAndWithinTheBody() async throws {
        let (before, inside) = (Gate(), Gate())
        let server = try server(.whole.stalling(at: inside, after: 2).stalling(at: before))
        let client = try WireClient(server)
        try client.send(expecting)
        await before.waitUntilReached()
        #expect(client.isQuiet)
        before.open()
        #expect(try client.response().status == 100)
        try client.send("body")
        await inside.waitUntilReached()
        #expect(server.requests.map(\.bodyLength) == [2])
        inside.open()
        #expect(try client.response().text == "body")
    }

    @Test func slowReadingTakesTime() throws {
        let server = try server(.whole.slowly(bytes: 2, every: .milliseconds(15)))
        let client = try WireClient(server)
        let begin = ContinuousClock.now
        #expect(try client.exchange("POST", "/", body: "0123456").text == "0123456")
        #expect(ContinuousClock.now - begin >= .milliseconds(45))
    }

    @Test func incompleteBodyIsRecorded() async throws {
        let server = try server(.whole)
        let client = try WireClient(server)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
        client.close()
        #expect(await server.waitUntil(connectionCount: 1))
        #expect(await server.waitUntil(openConnections: 0))
        let request = try #require(server.requests.first)
        #expect(request.bodyText == "abc" && !request.isBodyComplete)
    }
}
