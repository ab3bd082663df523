// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc
import Testing

@testable import CurlewEngine

@Suite("SocketTable", .timeLimit(.minutes(5)))
struct SocketTableTests {
    /// An epoll, a table on it and the descriptors of a test.
    private final class Fixture {
        let epoll = curlew_epoll_create()
        let table: SocketTable
        private var open: Set<CInt> = []

        init() { table = SocketTable(epoll: epoll) }

        deinit {
            for descriptor in open { close(descriptor) }
            close(epoll)
        }

        /// A connected pair of sockets, the first of which the table is told of as libcurl's socket of ours.
        func pair(isOurs: Bool = true) -> (near: CInt, far: CInt) {
            var ends: [CInt] = [0, 0]
            #expect(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
            open.formUnion(ends)
            if isOurs { table.opened(ends[0], to: nil) }
            return (ends[0], ends[1])
        }

        /// A connection over TCP, whose near end leads to an origin, and the near end's local port.
        func connection(to origin: Origin) throws -> (
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

        /// What epoll reports now, as descriptor, domain and mask.
        func events() -> [(descriptor: CInt, domain: UInt32, mask: UInt32)] {
            var ready = [curlew_ready](repeating: curlew_ready(), count: 16)
            let count = curlew_epoll_wait(epoll, &ready, 16, 0)
            return ready.prefix(Int(count)).map { event in
                let (descriptor, domain) = SocketTable.parts(of: event.token)
                return (descriptor, domain, event.mask)
            }
        }

        /// What the kernel has registered: descriptor → mask without the ones it adds.
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
    func aTokenNamesDescriptorAndDomain(descriptor: CInt, domain: UInt32) {
        let token = UInt64(domain) << 32 | UInt64(descriptor)
        let parts = SocketTable.parts(of: token)
        #expect(parts.descriptor == descriptor)
        #expect(parts.domain == domain)
        #expect(token != SocketTable.wakeToken)
    }

    @Test func whatLibcurlWantsIsRegisteredAndReported() throws {
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
    func eachWishHasItsMask(what: CInt, mask: UInt32) throws {
        let fixture = Fixture()
        let (near, _) = fixture.pair()
        fixture.table.watch(near, what: what, domain: 0)
        #expect(try fixture.registered() == [near: mask])
        fixture.table.watch(near, what: CURL_POLL_OUT, domain: 0)
        #expect(try fixture.registered() == [near: Self.writable])
    }

    @Test func registrationIsLazyBetweenRequests() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 1)
        #expect(try fixture.registered() == [near: Self.readable], "kept for the next request")
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
    }

    @Test func aStrayEventDropsTheRegistration() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
        #expect(!fixture.table.wants(near))
        fixture.table.stray(near, Self.readable)
        #expect(try fixture.registered() == [:])
        #expect(fixture.events().isEmpty, "reported once, not for ever")
        #expect(!fixture.table.wants(near))
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(try fixture.registered() == [near: Self.readable])
        #expect(fixture.events().count == 1)
    }

    /// libcurl watches no socket for a transfer that is paused before it could have been watched.
    @Test func bytesForAPausedTransferAreNotUnasked() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, far, port, opened) = try fixture.connection(to: origin)
        let first = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.part(first, from: origin)
        let second = fixture.table.join(origin, port: port, isIPv6: false)
        #expect(second == first && fixture.table.isUsed(second))
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
        fixture.table.stray(near, Self.readable)
        var byte: CChar = 0
        #expect(recv(near, &byte, 1, CInt(MSG_PEEK)) == 1, "the connection is as it was")
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(fixture.events().count == 1)
        // The same bytes after its end are nobody's.
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.part(second, from: origin)
        fixture.table.stray(near, Self.readable)
        #expect(recv(near, &byte, 1, 0) == 0 && origin.sockets == 0 && origin.descriptors.isEmpty)
    }

    /// An idle connection of HTTP/2 has frames of its own; what another one says that nobody asked for ends it.
    @Test(arguments: [SocketTable.Version.unknown, .http1, .http2], [readable, writable, curlew_peer_closed])
    func anEventOnAnIdleConnection(_ version: SocketTable.Version, _ mask: UInt32) throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, port, opened) = try fixture.connection(to: origin)
        let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.learn(connection, version)
        #expect(fixture.table.version(of: connection) == version)
        fixture.table.watch(near, what: CURL_POLL_INOUT, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.part(connection, from: origin)
        fixture.table.stray(near, mask)
        let isClosed = mask == curlew_peer_closed || mask == Self.readable && version != .http2
        #expect(origin.sockets == (isClosed ? 0 : 1))
        #expect(fixture.events().isEmpty, "being writable is no event")
    }

    @Test func whatWasPausedIsWatchedAgainWhenItIsIdle() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, far, port, opened) = try fixture.connection(to: origin)
        let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        fixture.table.stray(near, Self.readable)
        #expect(try fixture.registered() == [:])
        fixture.table.part(connection, from: origin)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().count == 1)
    }

    @Test func theConnectionThatIsIdleLongestMakesRoom() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let connections = try (0..<3).map { _ in
            let (_, _, port, opened) = try fixture.connection(to: origin)
            return fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        }
        for number in [1, 0] { fixture.table.part(connections[number], from: origin) }
        fixture.table.buryOldestIdle { _ in true }
        #expect(curlew_has_ended(connections[1].descriptor) && origin.sockets == 2)
        fixture.table.buryOldestIdle { _ in true }
        #expect(curlew_has_ended(connections[0].descriptor) && origin.sockets == 1)
        fixture.table.buryOldestIdle { _ in true }
        #expect(!curlew_has_ended(connections[2].descriptor) && origin.sockets == 1, "it is in use")
    }

    @Test func howAConnectionEndedIsRemembered() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        for isEnded in [false, true] {
            let (near, far, port, opened) = try fixture.connection(to: origin)
            let connection = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
            fixture.table.learn(connection, .http2)
            #expect(fixture.table.isGoodFor(oneOf: connection))
            if isEnded { fixture.drop(far) }
            #expect(fixture.table.isGoodFor(oneOf: connection) != isEnded)
            fixture.drop(near)
            #expect(fixture.table.isGoodFor(oneOf: connection) != isEnded)
        }
        let (_, _, port, opened) = try fixture.connection(to: origin)
        let shared = (0..<2).map { _ in fixture.table.join(origin, port: port, isIPv6: false, opened: opened) }
        #expect(!fixture.table.isGoodFor(oneOf: shared[0]), "another's stream may be why")
    }

    @Test func aConnectionThatCannotBeFoundKeepsAllOthers() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (_, _, port, opened) = try fixture.connection(to: origin)
        let known = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.part(known, from: origin)
        let unknown = fixture.table.join(origin, port: port, isIPv6: true, opened: opened)
        fixture.table.buryOldestIdle { $0 === origin }
        #expect(unknown == .unknown && origin.sockets == 1)
        fixture.table.part(unknown, from: origin)
        fixture.table.buryOldestIdle { $0 === origin }
        #expect(origin.sockets == 0)
    }

    @Test func whatIsSaidOfAnEarlierConnectionIsNotTrueOfTheNext() throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, port, opened) = try fixture.connection(to: origin)
        let first = fixture.table.join(origin, port: port, isIPv6: false, opened: opened)
        fixture.table.closed(near)
        let next = fixture.table.opened(near, to: origin)
        let second = fixture.table.join(origin, port: port, isIPv6: false, opened: [next])
        #expect(first != second && !fixture.table.isUsed(first))
        fixture.table.part(first, from: origin)
        #expect(fixture.table.isUsed(second))
    }

    /// libcurl closes sockets that never became a connection without a word, and somebody else gets their numbers.
    @Test(arguments: [false, true]) func aSocketThatVanishedIsNeverTouched(isTold: Bool) throws {
        let fixture = Fixture()
        let origin = Origin(host: "127.0.0.1", port: 80, isSecure: false)
        let (near, _, _, opened) = try fixture.connection(to: origin)
        fixture.table.watch(near, what: CURL_POLL_OUT, domain: 0)
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        let (other, far) = fixture.pair(isOurs: false)
        #expect(dup2(other, near) == near)
        if isTold {
            fixture.table.vanished(opened)
            #expect(fixture.table.open == 0 && origin.sockets == 0)
        }
        fixture.table.buryOldestIdle { _ in true }
        fixture.table.stray(near, Self.readable)
        #expect(write(far, "x", 1) == 1)
        var byte: CChar = 0
        #expect(recv(near, &byte, 1, CInt(MSG_DONTWAIT)) == 1, "a stranger's socket")
        // Its number comes back to us, and counts once.
        fixture.table.opened(near, to: origin)
        #expect(fixture.table.open == 1 && origin.sockets == 1)
    }

    @Test func anotherDomainTakesADescriptorOver() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 1)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 2)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().first?.domain == 2)
    }

    @Test func aNumberUsedAgainIsRegisteredAgain() throws {
        let fixture = Fixture()
        let (near, _) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        let (other, far) = fixture.pair(isOurs: false)
        fixture.table.closed(near)
        #expect(!fixture.table.wants(near))
        // Closes the one and opens the other in one step, so that no other test gets the number in between.
        #expect(dup2(other, near) == near)
        fixture.table.opened(near, to: nil)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 3)
        #expect(try fixture.registered() == [near: Self.readable])
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().first?.domain == 3)
    }

    @Test func aClosedDescriptorIsSilentEvenWhenAnotherProcessHoldsIt() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair()
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        // What a forked child that never calls exec does: the connection outlives our descriptor.
        let copy = dup(near)
        fixture.adopt(copy)
        fixture.drop(near)
        #expect(write(far, "x", 1) == 1)
        #expect(fixture.events().isEmpty)
    }

    @Test func strangersAreForgottenAtOnceAndClosedOnExec() throws {
        let fixture = Fixture()
        let (near, far) = fixture.pair(isOurs: false)
        #expect(fcntl(near, F_GETFD) & FD_CLOEXEC == 0)
        fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
        #expect(fcntl(near, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(far, F_GETFD) & FD_CLOEXEC != 0, "the partner libcurl never shows")
        #expect(try fixture.registered() == [near: Self.readable])
        fixture.table.watch(near, what: CURL_POLL_REMOVE, domain: 0)
        #expect(try fixture.registered() == [:])
    }

    @Test func aPartnerIsFoundWhereverItsNumbersAre() throws {
        let fixture = Fixture()
        for _ in 0..<50 {
            let (near, far) = fixture.pair(isOurs: false)
            // Its partner moves: other sockets stand between them now.
            let moved = fcntl(far, F_DUPFD, far + 20)
            fixture.adopt(moved)
            fixture.drop(far)
            let (stranger, other) = fixture.pair(isOurs: false)
            fixture.table.watch(near, what: CURL_POLL_IN, domain: 0)
            #expect(fcntl(moved, F_GETFD) & FD_CLOEXEC != 0)
            #expect(fcntl(stranger, F_GETFD) & FD_CLOEXEC == 0, "nobody else's socket is touched")
            #expect(fcntl(other, F_GETFD) & FD_CLOEXEC == 0)
            for descriptor in [moved, near, stranger, other] { fixture.drop(descriptor) }
        }
    }

    @Test func unknownDescriptorsAreNobodys() {
        let fixture = Fixture()
        #expect(!fixture.table.wants(1000))
        fixture.table.closed(1000)
        fixture.table.watch(3, what: CURL_POLL_REMOVE, domain: 0)
        #expect(!fixture.table.wants(3))
    }

    @Test func whatEpollRefusesIsNotBelieved() throws {
        let fixture = Fixture()
        // No process may have so many open.
        let impossible: CInt = 1 << 20
        fixture.table.watch(impossible, what: CURL_POLL_IN, domain: 0)
        #expect(try fixture.registered() == [:])
        #expect(fixture.table.wants(impossible), "wanted all the same")
    }
}

struct Unreadable: Error { let path: String }

/// The lines of a file, below /proc as a rule.
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
