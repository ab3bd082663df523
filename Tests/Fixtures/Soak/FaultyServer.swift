// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

/// A server whose response to each path, including its faults, depends on the number in the path.
///
/// A response that must arrive completely has its length in `X-Length`; the response to an upload has the number of
/// read bytes in `X-Read`.
struct FaultyServer {
    let server: MockServer

    init(_ identity: TestIdentity? = nil, seed: UInt64) throws {
        var options = MockServer.Options()
        options.requestBodyLimit = 0
        options.onAccept = { number in FaultyServer.welcome(number, seed) }
        server = try MockServer(tls: identity, options: options) { request in
            let number = UInt64(request.path.split(separator: "/").last ?? "") ?? 0
            var chance = Chance(seed: number)
            if request.method == "PUT" || request.method == "POST" {
                return .text("\(request.bodyLength)", status: 201).field("X-Read", "\(request.bodyLength)")
            }
            return FaultyServer.answer(&chance)
        }
        server.on("PUT", "/early/*", .status(413), reading: .none)
        server.on("PUT", "/prefix/*", .status(413), reading: .prefix(5000))
        server.on("PUT", "/after/*", .status(202), reading: .afterResponse)
        server.on("PUT", "/slow/*", .status(202), reading: .whole.slowly(bytes: 20_000, every: .milliseconds(1)))
        server.on("PUT", "/stuck/*", .status(202), reading: .whole.stalling(at: Gate(), after: 3000))
        server.on("PUT", "/reset/*", .status(202).fault(.reset, at: .start), reading: .prefix(100))
    }

    /// Returns the faults of some connections right after they are accepted.
    private static func welcome(_ number: Int, _ seed: UInt64) -> [SocketFault] {
        var chance = Chance(seed: seed &+ UInt64(number))
        guard chance.onceIn(25) else { return [] }
        return [[.reset], [.close], [.stall(Gate())], [.pause(.milliseconds(100))], [.send([0, 1, 2, 3])]]
            .randomElement(using: &chance) ?? []
    }

    private static func answer(_ chance: inout Chance) -> MockResponse {
        if chance.onceIn(8) { return garbage.randomElement(using: &chance) ?? .silence }
        let length = [0, 5, 1000, 70_000, 400_000, 3_000_000].randomElement(using: &chance) ?? 0
        let pattern = PatternBody(seed: UInt64(length), length: length)
        var response = MockResponse.pattern(pattern)
        switch chance.number(0...9) {
        case 0...4: response = response.field("X-Length", "\(length)")
        case 5...6: response = response.field("X-Length", "\(length)").chunked(size: chance.number(1000...20_000))
        case 7: response = response.untilClose()
        case 8: response = response.informational(103, [("Link", "</style.css>; rel=preload")])
        default: response = .status([204, 304, 404, 500].randomElement(using: &chance) ?? 500)
        }
        if chance.onceIn(12) {
            response = response.dripping(bytes: max(1, length / 20), every: .milliseconds(10))
        }
        if chance.onceIn(10) { response = response.closing() }
        if chance.onceIn(3) { response = response.fault(fault(&chance), at: point(&chance, length)) }
        return response
    }

    private static func fault(_ chance: inout Chance) -> SocketFault {
        switch chance.number(0...9) {
        case 0...2: .reset
        case 3...5: .close
        case 6: .stall(Gate())
        default: .pause(.milliseconds(chance.number(1...300)))
        }
    }

    private static func point(_ chance: inout Chance, _ length: Int) -> MockResponse.Point {
        switch chance.number(0...5) {
        case 0: .start
        case 1...2: .head(chance.number(0...60))
        case 3...4: .body(chance.number(0...max(1, length - 1)))
        default: .end
        }
    }

    private static let garbage: [MockResponse] = [
        .raw("SSH-2.0-OpenSSH_9.2\r\n").closing(),
        .raw("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello").closing(),
        .raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello").closing(),
        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n").closing(),
        .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel").closing(),
        .raw("HTTP/1.1 20\r\n\r\n").closing(),
        .raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello").closing(),
        .raw("HTTP/1.1 200 OK\r\n\(String(repeating: "X-Flood: 1\r\n", count: 30_000))").closing(),
        .raw([UInt8](repeating: 0, count: 3000)).closing(),
        .text("hello").fault(.send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)), at: .end),
        .silence,
    ]
}
