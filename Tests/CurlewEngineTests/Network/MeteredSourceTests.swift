// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewEngine

/// The bus's end of a connection, which never blocks: data on a Unix socket arrives when it is sent.
private final class BusEnd {
    private let descriptor: CInt

    init(descriptor: CInt) { self.descriptor = descriptor }
    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        let count = Glibc.send(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
        #expect(count == bytes.count)
    }

    /// Returns all bytes that have arrived.
    func receive() -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Whether the other end is closed and all its bytes are read.
    var hasEnded: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, CInt(MSG_PEEK | MSG_DONTWAIT)) == 0
    }
}

@Suite("Source of the metered state", .timeLimit(.minutes(5)))
struct MeteredSourceTests {
    private static func pair() throws -> (near: CInt, far: CInt) {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    private static func connected() throws -> (source: MeteredSource, bus: BusEnd) {
        let (near, far) = try pair()
        return (MeteredSource(descriptor: near), BusEnd(descriptor: far))
    }

    /// Returns the events of a descriptor that are ready now.
    private static func ready(_ source: MeteredSource) -> Int16 {
        var entry = pollfd(fd: source.descriptor, events: source.events, revents: 0)
        poll(&entry, 1, 0)
        return entry.revents
    }

    @Test func sourceWaitsForTheFirstValue() throws {
        let (source, bus) = try Self.connected()
        source.waitForValue(until: 0)
        #expect(source.isMetered == nil && !source.isClosed)
        for message in BusMessages().conversation(metered: 1) { bus.send(message) }
        source.waitForValue(until: .max / 2)
        #expect(source.isMetered == true)
        source.waitForValue(until: .max / 2)
    }

    @Test func sourceFollowsTheValue() throws {
        let (source, bus) = try Self.connected()
        let digits = "\(geteuid())".utf8.map { String($0, radix: 16) }.joined()
        #expect(bus.receive() == [0] + Array("AUTH EXTERNAL \(digits)\r\n".utf8))
        #expect(source.events == Int16(POLLIN))
        #expect(Self.ready(source) == 0)
        source.handle()
        #expect(!source.isClosed && source.isMetered == nil)

        for message in BusMessages().conversation(metered: 1) {
            bus.send(message)
            #expect(Self.ready(source) == Int16(POLLIN))
            source.handle()
        }
        #expect(source.isMetered == true)
        #expect(bus.receive().starts(with: Array("BEGIN\r\n".utf8)))

        bus.send(BusMessages().propertyChanged(4))
        source.handle()
        #expect(source.isMetered == false)
    }

    /// A call of `handle()` reads at most 8 KiB.
    @Test func moreInputMakesTheDescriptorReadyAgain() throws {
        let (source, bus) = try Self.connected()
        for message in BusMessages().conversation(metered: 1) { bus.send(message) }
        for _ in 0..<100 { bus.send(BusMessages().propertyChanged(1)) }
        bus.send(BusMessages().propertyChanged(2))
        var calls = 0
        while Self.ready(source) & Int16(POLLIN) != 0 {
            source.handle()
            calls += 1
        }
        #expect(calls > 1 && source.isMetered == false)
    }

    @Test func endOfTheBusClosesTheSource() throws {
        let (near, far) = try Self.pair()
        let source = MeteredSource(descriptor: near)
        do {
            let bus = BusEnd(descriptor: far)
            for message in BusMessages().conversation(metered: 1) {
                bus.send(message)
                source.handle()
            }
            #expect(source.isMetered == true)
            _ = bus.receive()
        }
        #expect(Self.ready(source) & Int16(POLLIN | POLLHUP) != 0)
        source.handle()
        #expect(source.isClosed && source.isMetered == nil && source.descriptor == -1)
        source.handle()
    }

    @Test func bytesForABusThatHasEndedRaiseNoSignal() throws {
        let (near, far) = try Self.pair()
        close(far)
        let source = MeteredSource(descriptor: near)
        #expect(source.isClosed)
    }

    @Test func malformedBytesCloseTheSocket() throws {
        let (source, bus) = try Self.connected()
        bus.send(BusMessages.accepted + [UInt8](repeating: 0, count: 16))
        source.handle()
        #expect(source.isClosed)
        _ = bus.receive()
        #expect(bus.hasEnded)
    }

    @Test func releasedSourceClosesItsSocket() throws {
        let (near, far) = try Self.pair()
        let bus = BusEnd(descriptor: far)
        do {
            let source = MeteredSource(descriptor: near)
            #expect(!source.isClosed)
        }
        _ = bus.receive()
        #expect(bus.hasEnded)
    }

    /// Fills the buffer of a socket and returns the number of bytes in it.
    private static func fill(_ descriptor: CInt) -> Int {
        let bytes = [UInt8](repeating: 0, count: 4096)
        var total = 0
        for size in [bytes.count, 1] {
            while true {
                let count = send(descriptor, bytes, size, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
                guard count > 0 else { break }
                total += count
            }
        }
        return total
    }

    @Test func bytesWaitWhileTheSocketIsFull() throws {
        let (near, far) = try Self.pair()
        let bus = BusEnd(descriptor: far)
        let filled = Self.fill(near)
        let source = MeteredSource(descriptor: near)
        #expect(source.events == Int16(POLLIN | POLLOUT))
        #expect(Self.ready(source) == 0)
        #expect(bus.receive().count == filled)
        #expect(Self.ready(source) == Int16(POLLOUT))
        source.handle()
        #expect(source.events == Int16(POLLIN))
        #expect(String(decoding: bus.receive().dropFirst(), as: UTF8.self).hasPrefix("AUTH EXTERNAL "))
    }

    @Test func connectionToABusThatDoesNotReadIsClosed() throws {
        let (near, far) = try Self.pair()
        let bus = BusEnd(descriptor: far)
        let source = MeteredSource(descriptor: near)
        for message in BusMessages().conversation(metered: 1) {
            bus.send(message)
            source.handle()
        }
        _ = Self.fill(near)
        var changes = 0
        while !source.isClosed, changes < 10_000 {
            changes += 1
            bus.send(BusMessages().ownerChanged(from: ":1.\(changes)", to: ":1.\(changes + 1)"))
            source.handle()
        }
        #expect((100..<1000).contains(changes), "each change causes a call of about 200 bytes")
        #expect(source.isMetered == nil && source.descriptor == -1)
    }

    // MARK: Addresses

    /// Returns a listening Unix socket.
    private static func listener(_ name: [UInt8]) throws -> CInt {
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
        try #require(isBound && listen(descriptor, 1) == 0)
        return descriptor
    }

    private static func examine(_ address: String, _ listener: CInt) throws {
        let source = try #require(MeteredSource(address: address))
        #expect(fcntl(source.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(source.descriptor, F_GETFL) & O_NONBLOCK != 0)
        let bus = BusEnd(descriptor: accept(listener, nil, nil))
        for message in BusMessages().conversation(metered: 3) {
            bus.send(message)
            source.handle()
        }
        #expect(source.isMetered == true)
    }

    @Test func socketsWithAPathAndAbstractOnesAreReached() throws {
        let name = "curlew bus \(UUID())"
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
        let file = try Self.listener(Array(path.utf8) + [0])
        defer {
            close(file)
            unlink(path)
        }
        let escaped = path.replacing(" ", with: "%20")
        try Self.examine("unix:path=\(escaped),guid=00", file)
        try Self.examine("tcp:host=127.0.0.1,port=1;unix:path=\(escaped)x;unix:path=\(escaped)", file)
        let abstract = try Self.listener([0] + Array(name.utf8))
        defer { close(abstract) }
        try Self.examine("unix:abstract=curlew%20bus\(name.dropFirst(10).replacing(" ", with: "%20"))", abstract)
    }

    /// A bus that closes the connection before its first reply is tried again later.
    @Test func busThatClosesAtOnceIsTriedAgain() throws {
        let name = "curlew-bus-\(UUID())"
        let listener = try Self.listener([0] + Array(name.utf8))
        defer { close(listener) }
        // On a busy machine, the thread may be too late for one source.
        for _ in 0..<100 {
            #expect(startThread("curlew-test") { close(accept(listener, nil, nil)) } == 0)
            let source = try #require(LinkSource(bus: "unix:abstract=\(name)"))
            #expect(source.read(now: 7).isMetered == nil)
            if source.deadline == 1_000_000_007 { return }
        }
        Issue.record("no source plans another attempt")
    }

    @Test func machineWithoutABusHasNoSource() {
        let long = String(repeating: "a", count: 200)
        for address in ["", "unix:path=/nonexistent/bus", "unix:path=/\(long)", "unix:abstract=\(long)", "tcp:host=a"] {
            #expect(MeteredSource(address: address) == nil)
        }
    }
}
