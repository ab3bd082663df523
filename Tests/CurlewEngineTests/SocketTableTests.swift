// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc
import Testing

@testable import CurlewEngine

@Suite("SocketTable", .timeLimit(.minutes(5)))
struct SocketTableTests {
    /// An epoll descriptor, its socket table and the descriptors of a test.
    private final class Fixture {
        let epoll = curlew_epoll_create()
        let table: SocketTable
        private var open: Set<CInt> = []

        init() { table = SocketTable(epoll: epoll) }

        deinit {
            for descriptor in open { close(descriptor) }
            close(epoll)
        }

        /// Creates a connected pair of sockets; the first is registered as a socket that the engine opened for libcurl.
        func pair(isOurs: Bool = true) -> (near: CInt, far: CInt) {
            var ends: [CInt] = [0, 0]
            #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
            open.formUnion(ends)
            if isOurs { table.opened(ends[0], to: nil) }
            return (ends[0], ends[1])
        }

        /// Creates a TCP connection to an origin and returns its ends and the local port of the near end.
        func connection(to origin: Origin?) throws -> (
            near: CInt, far: CInt, port: Int, opened: [SocketTable.Connection]
        ) {
            let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            let near = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { any in
                    bind(listener, any, length) == 0 && listen(listener, 1) == 0
                        && getsockname(listener, any, &length) == 0 && connect(near, any, length) == 0
                }
            }
            try #require(isConnected)
            let far = accept(listener, nil, nil)
            open.formUnion([near, far])
            return (near, far, Int(curlew_local_port(near)), [table.opened(near, to: origin)])
        }

        func drop(_ descriptor: CInt) {
            open.remove(descriptor)
            table.closed(descriptor)
            close(descriptor)
        }

        func adopt(_ descriptor: CInt) { open.insert(descriptor) }

        /// Returns the events that epoll reports now.
        func events() -> [(descriptor: CInt, domain: UInt32, mask: UInt32)] {
            var ready = [curlew_ready](repeating: curlew_ready(), count: 16)
            let count = curlew_epoll_wait(epoll, &ready, 16, 0)
            return ready.prefix(Int(count)).map { event in
                let (descriptor, domain) = SocketTable.parts(of: event.token)
                return (descriptor, domain, event.mask)
            }
        }

        /// Returns the descriptors registered in the kernel and their masks, without the flags that the kernel adds.
        func registered() throws -> [CInt: UInt32] {
            var registered: [CInt: UInt32] = [:]
            for line in try lines(of: "/proc/self/fdinfo/\(epoll)") {
                let words = line.split(separator: " ", omittingEmptySubsequences: true)
                guard words.count > 3, words[0] == "tfd:" else { continue }
                let mask = UInt32(words[3], radix: 16) ?? 0
                registered[CInt(words[1]) ?? -1] = mask & (curlew_readable | curlew_writable)
            }
            return registered
        }
    }

    private static let (readable, writable) = (curlew_readable, curlew_writable)

    @Test(arguments: [(CInt(0), UInt32(0)), (7, 3), (1_048_575, 70_000)])
    func tokenContainsDescriptorAndDomain(descriptor: CInt, domain: UInt32) {
        let token = UInt64(domain) << 32 | UInt64(descriptor)
        let parts = SocketTable.parts(of: token)
        #expect(parts.descriptor == descriptor)
        #expect(parts.domain == domain)
        #expect(token != SocketTable.wakeToken)
    }

    @Test func watchedSocketIsRegisteredAndReported() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        #expect(try fixture.registered() == [:])
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 5)
        #expect(try fixture.registered() == [near: Self.readable])
        #expect(fixture.events().isEmpty)
        #expect(write(far, "x", 1) == 1)
        let event = try #require(fixture.events().first)
        #expect(event.descriptor == near)
        #expect(event.domain == 5)
        #expect(event.mask & Self.readable != 0)
        #expect(fixture.table.wants(near))
    }

    @Test(arguments: [(CURL_POLL_IN, readable), (CURL_POLL_OUT, writable), (CURL_POLL_INOUT, readable | writable)])
    func pollActionsMapToEpollMasks(what: CInt, mask: UInt32) throws {
        let fixture = Fixture()
        let (near, _) = fixture.pair()
        fixture.table.watch(near, what: what, domain: 0)
        #expect(try fixture.registered() == [near: mask])
        fixture.table.watch(near, what: CURL_POLL_OUT, domain: 0)
        #expect(try fixture.registered() == [near: Self.writable])
    }

    @Test func registrationIsKeptBetweenRequests() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 1)
        #expect(try fixture.registered() == [near: Self.readable], "kept for the next request")
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
    }

    @Test func unexpectedEventDropsTheRegistration() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
        #expect(!fixture.table.wants(near))
        fixture.table.handleUnexpectedEvent(near, Self.readable)
        #expect(try fixture.registered() == [:])
        #expect(fixture.events().isEmpty, "the event is reported once only")
        #expect(!fixture.table.wants(near))
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(try fixture.registered() == [near: Self.readable])
        #expect(fixture.events().count == 1)
    }

    /// libcurl does not watch the socket of a transfer that is paused before libcurl could watch it.
    @Test func bytesForAPausedTransferKeepTheConnection() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, far, port, opened) = try fixture.connection(to: origin)
        let first = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.leave(first, from: origin)
        let second = fixture.table.join(origin, port: port, isIPv6: false)
        #expect(second == first && fixture.table.isUsed(second))
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
        fixture.table.handleUnexpectedEvent(near, Self.readable)
        var byte: CChar = 0
        #expect(recv(near, &byte, 1, CInt(MSG_PEEK)) == 1, "the connection is still open")
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(fixture.events().count == 1)
        // The same bytes after the transfer has ended are unsolicited and close the connection.
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.leave(second, from: origin)
        fixture.table.handleUnexpectedEvent(near, Self.readable)
        #expect(recv(near, &byte, 1, 0) == 0 && origin.sockets == 0 && origin.descriptors.isEmpty)
    }

    /// An idle HTTP/2 connection may receive frames; unsolicited bytes close any other idle connection.
    @Test(arguments: [SocketTable.Version.unknown, .http1, .http2], [readable, writable, curlew_peer_closed])
    func unexpectedEventsCloseIdleConnectionsExceptHTTP2(_ version: SocketTable.Version, _ mask: UInt32) throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, port, opened) = try fixture.connection(to: origin)
        let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.learn(connection, version)
        #expect(fixture.table.version(of: connection) == version)
        fixture.table.watch(near, what: CURL_POLL_INOUT, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.leave(connection, from: origin)
        fixture.table.handleUnexpectedEvent(near, mask)
        let isClosed = mask == curlew_peer_closed || mask == Self.readable && version != .http2
        #expect(origin.sockets == (isClosed ? 0 : 1))
        #expect(fixture.events().isEmpty, "writability of an idle connection is not reported")
    }

    @Test func idleConnectionIsWatchedAgainAfterAPause() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, far, port, opened) = try fixture.connection(to: origin)
        let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.handleUnexpectedEvent(near, Self.readable)
        #expect(try fixture.registered() == [:])
        fixture.table.leave(connection, from: origin)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
    }

    @Test func closeOldestIdleClosesTheLongestIdleConnection() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let connections = try (0..<3).map { _ in
            let (_, _, port, opened) = try fixture.connection(to: origin)
            return fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        }
        for number in [1, 0] { fixture.table.leave(connections[number], from: origin) }
        fixture.table.closeOldestIdle { _ in true }
        #expect(curlew_has_ended(connections[1].descriptor) && origin.sockets == 2)
        fixture.table.closeOldestIdle { _ in true }
        #expect(curlew_has_ended(connections[0].descriptor) && origin.sockets == 1)
        fixture.table.closeOldestIdle { _ in true }
        #expect(!curlew_has_ended(connections[2].descriptor) && origin.sockets == 1, "the connection is in use")
    }

    @Test func canOnlyBeRefusedUntilThePeerCloses() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        for isEnded in [false, true] {
            let (near, far, port, opened) = try fixture.connection(to: origin)
            let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
            fixture.table.learn(connection, .http2)
            #expect(fixture.table.canOnlyBeRefused(oneOf: connection))
            if isEnded { fixture.drop(far) }
            #expect(fixture.table.canOnlyBeRefused(oneOf: connection) != isEnded)
            fixture.drop(near)
            #expect(fixture.table.canOnlyBeRefused(oneOf: connection) != isEnded)
        }
        let (_, _, port, opened) = try fixture.connection(to: origin)
        let shared = (0..<2).map { _ in fixture.table.join(origin, port: port, isIPv6: false, opened: opened) }
        #expect(!fixture.table.canOnlyBeRefused(oneOf: shared[0]), "another stream may be the cause")
    }

    @Test func unknownConnectionKeepsIdleConnectionsOpen() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (_, _, port, opened) = try fixture.connection(to: origin)
        let known = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.leave(known, from: origin)
        let unknown = fixture.table.join(origin, port: port, isIPv6: true, opened: opened)
        fixture.table.closeOldestIdle { $0 === origin }
        #expect(unknown == .unknown && origin.sockets == 1)
        fixture.table.leave(unknown, from: origin)
        fixture.table.closeOldestIdle { $0 === origin }
        #expect(origin.sockets == 0)
    }

    @Test func reusedDescriptorIsANewConnection() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, port, opened) = try fixture.connection(to: origin)
        let first = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.closed(near)
        let next = fixture.table.opened(near, to: origin)
        let second = fixture.table.join(origin, port: port, isIPv6: false, opened: [next])
        #expect(first != second && !fixture.table.isUsed(first))
        fixture.table.leave(first, from: origin)
        #expect(fixture.table.isUsed(second))
    }

    /// libcurl closes sockets that never became a connection without notice, and their numbers are reused.
    @Test(arguments: [false, true]) func vanishedSocketsAreNeverTouched(isNotified: Bool) throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, _, opened) = try fixture.connection(to: origin)
        fixture.table.watch(near, what: CURL_POLL_OUT, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        let (other, far) = fixture.pair(isOurs: false)
        #expect(dup2(other, near) == near)
        if isNotified {
            fixture.table.forgetUnconnected(opened)
            #expect(fixture.table.open == 0 && origin.sockets == 0)
        }
        fixture.table.closeOldestIdle { _ in true }
        fixture.table.handleUnexpectedEvent(near, Self.readable)
        #expect(write(far, "x", 1) == 1)
        var byte: CChar = 0
        #expect(recv(near, &byte, 1, CInt(MSG_DONTWAIT)) == 1, "the socket of other code stays open")
        // The number is reused for a socket of the engine and counts once.
        fixture.table.opened(near, to: origin)
        #expect(fixture.table.open == 1 && origin.sockets == 1)
    }

    @Test func connectedSocketReplacesAnAwaitedSocket() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (awaited, _, _, opened) = try fixture.connection(to: origin)
        fixture.table.watch(awaited, what: CURL_POLL_IN, domain: 3)
        let (rival, far, port, others) = try fixture.connection(to: nil)
        fixture.table.watch(rival, what: CURL_POLL_OUT, domain: 3)
        let address = SocketAddress("127.0.0.1", port: 80)
        #expect(fixture.table.replace(opened[0], by: others[0], to: address))
        fixture.drop(rival)
        #expect(curlew_local_port(awaited) == CInt(port) && fixture.table.endpoint(of: opened[0]) == address)
        #expect(fixture.table.open == 1 && origin.sockets == 1)
        #expect(fixture.events().isEmpty)
        #expect(write(far, "x", 1) == 1)
        let events = fixture.events()
        #expect(events.map(\.descriptor) == [awaited] && events.first?.domain == 3, "libcurl sees the new socket")
        #expect(!fixture.table.replace(opened[0], by: others[0], to: address), "the rival is gone")
    }

    @Test func acknowledgementThatLibcurlReadCounts() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (_, _, port, opened) = try fixture.connection(to: origin)
        let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        let url = try #require(ParsedURL("http://127.0.0.1/", origin: origin))
        let session = try #require(UnsafeMutableRawPointer(bitPattern: 64))
        let pings = EngineConfiguration.Pings(interval: 10, limit: 20)
        fixture.table.now = 100
        fixture.table.setSession(session, of: connection, url)
        #expect(fixture.table.duePings(pings, now: 110).silent == [connection])
        fixture.table.recordPing(connection, now: 110)
        #expect(fixture.table.duePings(pings, now: 130).unanswered == [connection])
        fixture.table.recordAnswer(of: session)
        #expect(fixture.table.duePings(pings, now: 130).unanswered.isEmpty)
    }

    @Test func descriptorMovesToAnotherDomain() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 2)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().first?.domain == 2)
    }

    @Test func reusedDescriptorIsRegisteredAgain() throws {
        let fixture = Fixture()
        let (near, _) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        let (other, far) = fixture.pair(isOurs: false)
        fixture.table.closed(near)
        #expect(!fixture.table.wants(near))
        // `dup2` replaces the socket in one step, so that no other test gets the number in between.
        #expect(dup2(other, near) == near)
        fixture.table.opened(near, to: nil)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 3)
        #expect(try fixture.registered() == [near: Self.readable])
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().first?.domain == 3)
    }

    @Test func closedDescriptorIsSilentDespiteCopiesInOtherProcesses() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        // A forked child that never calls exec also holds a copy: the connection outlives the descriptor.
        let copy = dup(near)
        fixture.adopt(copy)
        fixture.drop(near)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().isEmpty)
    }

    @Test func libcurlsOwnSocketPairsAreClosedOnExecAndUnregisteredAtOnce() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair(isOurs: false)
        #expect(fcntl(near, F_GETFD) & FD_CLOEXEC == 0)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(fcntl(near, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(far, F_GETFD) & FD_CLOEXEC != 0, "libcurl never passes the partner")
        #expect(try fixture.registered() == [near: Self.readable])
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        #expect(try fixture.registered() == [:])
    }

    @Test func socketPairPartnerIsFoundAtAnyDescriptor() throws {
        let fixture = Fixture()
        for _ in 0..<50 {
            let (near, far) = fixture.pair(isOurs: false)
            // The partner moves to a higher number, so that other sockets lie between them.
            let moved = fcntl(far, F_DUPFD, far + 20)
            fixture.adopt(moved)
            fixture.drop(far)
            let (stranger, other) = fixture.pair(isOurs: false)
            fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
            #expect(fcntl(moved, F_GETFD) & FD_CLOEXEC != 0)
            #expect(fcntl(stranger, F_GETFD) & FD_CLOEXEC == 0, "sockets of other code stay unchanged")
            #expect(fcntl(other, F_GETFD) & FD_CLOEXEC == 0)
            for descriptor in [moved, near, stranger, other] { fixture.drop(descriptor) }
        }
    }

    @Test func unknownDescriptorsAreIgnored() {
        let fixture = Fixture()
        #expect(!fixture.table.wants(1000))
        fixture.table.closed(1000)
        fixture.table.watch(3, what: CURL_POLL_REMOVE, domain: 0)
        #expect(!fixture.table.wants(3))
    }

    @Test func descriptorRejectedByEpollStaysWanted() throws {
        let fixture = Fixture()
        // No process may have this many open descriptors.
        let impossible: CInt = 1 << 20
        fixture.table.watch(impossible, what: CURL_POLL_IN, domain: 0)
        #expect(try fixture.registered() == [:])
        #expect(fixture.table.wants(impossible), "the socket is still wanted")
    }
}

struct Unreadable: Error { let path: String }

/// Returns the lines of a file, usually one in /proc.
func lines(of path: String) throws -> [String] {
    guard let file = fopen(path, "re") else { throw Unreadable(path: path) }
    defer { fclose(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = fread(&buffer, 1, buffer.count, file)
        if count == 0 { break }
        text += buffer[..<count]
    }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
}
