// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewEngine

/// A real message bus, and programs that use it with the D-Bus library of GLib.
private struct MessageBus {
    let instance: PeerInstance
    let script: String
    var address: String { "unix:path=\(instance.folder)/bus" }

    init() throws {
        instance = try PeerInstance(.dbus, [], hasLargeFile: false, mark: "unix:path=") { executable, folder, _ in
            let configuration = """
                <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
                 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
                <busconfig>
                  <listen>unix:path=\(folder)/bus</listen>
                  <auth>EXTERNAL</auth>
                  <policy context="default">
                    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
                  </policy>
                </busconfig>
                """
            try Data(configuration.utf8).write(to: URL(filePath: "\(folder)/bus.conf"))
            try Data(Self.text.utf8).write(to: URL(filePath: "\(folder)/manager.py"))
            return [executable, "--config-file=\(folder)/bus.conf", "--nofork", "--print-address=1"]
        }
        script = "\(instance.folder)/manager.py"
    }

    /// Starts a program with NetworkManager's name; it runs until this object is released or `run("quit")`.
    func startManager(metered: UInt32) throws -> PeerProcess {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-manager-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let arguments = ["/usr/bin/python3", "-B", script, address, "serve", "\(metered)"]
        let process = try PeerProcess(arguments, folder: folder)
        if let output = process.failure(before: "ready") { throw PeerFailure("no NetworkManager: \(output)") }
        return process
    }

    /// Runs a command of the script and returns when the bus has received its messages.
    func run(_ command: String, _ value: UInt32 = 0) async throws {
        let output = try await ShellCommand.output(
            "/usr/bin/python3 -B '\(script)' '\(address)' \(command) \(value) 2>&1 && echo done")
        guard output == Data("done\n".utf8) else { throw PeerFailure(String(decoding: output, as: UTF8.self)) }
    }

    private static let text = #"""
        import sys
        from gi.repository import Gio, GLib

        NAME, PATH = "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager"
        BUS, BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
        INTERFACES = """
            <node>
              <interface name="org.freedesktop.NetworkManager">
                <property name="Metered" type="u" access="read"/>
              </interface>
              <interface name="test.Control">
                <method name="Set"><arg name="value" type="u" direction="in"/></method>
                <method name="Quit"/>
              </interface>
            </node>
            """
        address, command, value = sys.argv[1], sys.argv[2], int(sys.argv[3])
        flags = Gio.DBusConnectionFlags
        bus = Gio.DBusConnection.new_for_address_sync(
            address, flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None)

        def call(name, path, interface, member, arguments=None):
            return bus.call_sync(name, path, interface, member, arguments, None, Gio.DBusCallFlags.NONE, -1, None)

        def send_change(destination=None):
            values = {"State": GLib.Variant("u", 70), "Metered": GLib.Variant("u", value)}
            change = GLib.Variant("(sa{sv}as)", (NAME, values, ["Startup"]))
            bus.emit_signal(destination, PATH, BUS + ".Properties", "PropertiesChanged", change)

        def answer(connection, sender, path, interface, member, arguments, invocation):
            global value
            if member == "Set":
                value = arguments[0]
                send_change()
            invocation.return_value(None)
            if member == "Quit":
                bus.flush_sync(None)
                loop.quit()

        def read(connection, sender, path, interface, name): return GLib.Variant("u", value)

        if command == "serve":
            loop = GLib.MainLoop()
            for interface in Gio.DBusNodeInfo.new_for_xml(INTERFACES).interfaces:
                bus.register_object(PATH, interface, answer, read, None)
            call(BUS, BUS_PATH, BUS, "RequestName", GLib.Variant("(su)", (NAME, 0)))
            print("ready", flush=True)
            loop.run()
        elif command == "set":
            call(NAME, PATH, "test.Control", "Set", GLib.Variant("(u)", (value,)))
        elif command == "quit":
            call(NAME, PATH, "test.Control", "Quit")
        elif command == "forge":
            for name in call(BUS, BUS_PATH, BUS, "ListNames")[0]:
                if not name.startswith(":"): continue
                send_change(name)
                owner = GLib.Variant("(sss)", (NAME, "", bus.get_unique_name()))
                bus.emit_signal(name, BUS_PATH, BUS, "NameOwnerChanged", owner)
            bus.flush_sync(None)

        """#
}

/// A thread that polls a source, as the engine does, and reports the value after each input.
private final class MeteredWatcher: Sendable {
    /// The value after each input; ends when the source is closed.
    let values: AsyncStream<Bool?>
    /// One of two connected sockets; closing it stops the thread.
    private let lifeline: CInt

    init(address: String) throws {
        let (values, continuation) = AsyncStream<Bool?>.makeStream()
        self.values = values
        var ends: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let end = ends[0]
        lifeline = ends[1]
        let failure = startThread("curlew-metered") {
            defer {
                close(end)
                continuation.finish()
            }
            guard let source = MeteredSource(address: address) else { return }
            while !source.isClosed {
                var entries = [
                    pollfd(fd: source.descriptor, events: source.events, revents: 0),
                    pollfd(fd: end, events: Int16(POLLIN), revents: 0),
                ]
                poll(&entries, 2, -1)
                if entries[1].revents != 0 { return }
                guard entries[0].revents != 0 else { continue }
                source.handle()
                continuation.yield(source.isMetered)
            }
        }
        try #require(failure == 0)
    }

    deinit { close(lifeline) }
}

/// The conversation with a real bus, on which a program with another implementation of D-Bus has NetworkManager's name.
@Suite("NetworkManager on a message bus", .enabledIfInstalled(.dbus), .peer(.dbus), .timeLimit(.minutes(5)))
struct NetworkManagerTests {
    /// Waits for a value and returns the values before it without repetitions; nil if the source is closed before.
    private func values(
        _ values: inout AsyncStream<Bool?>.Iterator, until wanted: Bool?
    ) async -> [Bool?]? {
        var before: [Bool?] = []
        while let value = await values.next() {
            if value == wanted { return before }
            if before.last != .some(value) { before.append(value) }
        }
        return nil
    }

    @Test func valueOfNetworkManagerIsFollowed() async throws {
        var bus: MessageBus? = try MessageBus()
        let watcher = try MeteredWatcher(address: #require(bus?.address))
        var values = watcher.values.makeAsyncIterator()
        #expect(await values.next() == .some(nil), "NetworkManager does not run yet")
        var manager: PeerProcess? = try bus?.startManager(metered: 1)
        #expect(await self.values(&values, until: true) == [nil])
        try await bus?.run("set", 4)
        #expect(await self.values(&values, until: false) == [])
        try await bus?.run("set", 0)
        #expect(await self.values(&values, until: nil) == [])
        try await bus?.run("set", 3)
        #expect(await self.values(&values, until: true) == [])
        try await bus?.run("quit")
        #expect(await self.values(&values, until: nil) == [])
        manager = try bus?.startManager(metered: 2)
        #expect(await self.values(&values, until: false)?.contains(true) == false)
        withExtendedLifetime(manager) {}
        manager = nil
        #expect(await self.values(&values, until: nil) == [])
        bus = nil
        while let value = await values.next() { #expect(value == nil) }
    }

    @Test func runningNetworkManagerIsAskedAndForgedSignalsAreIgnored() async throws {
        let bus = try MessageBus()
        let manager = try bus.startManager(metered: 1)
        let watcher = try MeteredWatcher(address: bus.address)
        var values = watcher.values.makeAsyncIterator()
        #expect(await self.values(&values, until: true) == [nil])
        try await bus.run("forge", 2)
        #expect(await values.next() == .some(true), "the forged signals are the only input")
        try await bus.run("set", 0)
        #expect(await self.values(&values, until: nil).map { $0.contains(false) } == false)
        withExtendedLifetime(manager) {}
    }
}
