// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct LinkTests {
    /// A folder of the test, which is removed with this object.
    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-links-\(UUID())").path
        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ text: String, to name: String) throws {
            let place = "\(path)/\(name)"
            let folder = String(place[..<(place.lastIndex(of: "/") ?? place.endIndex)])
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(filePath: place))
        }
    }

    @Test func linkKindsAreReadFromDeviceFiles() throws {
        let root = try Folder()
        let devices: [(name: String, type: String, uevent: String, file: String?, kind: LinkState.Kind)] = [
            ("lo", "772", "", nil, .loopback), ("eth0", "1", "", nil, .ethernet), ("wlan0", "1", "", "wireless", .wifi),
            ("wlp2s0", "1", "", "phy80211", .wifi), ("wlx", "1", "DEVTYPE=wlan", nil, .wifi),
            ("wwan0", "1", "", nil, .cellular), ("cdc0", "1", "DEVTYPE=wwan", nil, .cellular),
            ("tun0", "65534", "", "tun_flags", .vpn), ("tap0", "1", "", "tun_flags", .ethernet),
            ("wg0", "65534", "DEVTYPE=wireguard", nil, .vpn), ("gre1", "778", "", nil, .vpn),
            ("can0", "280", "", nil, .other),
        ]
        for (number, device) in devices.enumerated() {
            if let file = device.file { try root.write("", to: "\(device.name)/\(file)") }
            try root.write("\(device.type)\n", to: "\(device.name)/type")
            try root.write("\(number + 1)\n", to: "\(device.name)/ifindex")
            try root.write("INTERFACE=\(device.name)\n\(device.uevent)\n", to: "\(device.name)/uevent")
            #expect(LinkState.Kind(of: device.name, system: root.path) == device.kind, "\(device.name)")
            let known = LinkState.Kind(
                of: device.name, index: UInt32(number + 1), type: Int(device.type), system: root.path)
            #expect(known == device.kind, "\(device.name)")
        }
        #expect(LinkState.Kind(of: "gone", system: root.path) == .other)
        // The files describe an interface of another network namespace.
        #expect(LinkState.Kind(of: "wlan0", index: 99, type: 1, system: root.path) == .ethernet)
        #expect(LinkState.Kind(of: "tap0", index: 99, type: 1, driver: "tun", system: root.path) == .ethernet)
        #expect(LinkState.Kind(of: "x", index: 99, type: 1, driver: "veth", system: root.path) == .ethernet)
        #expect(LinkState.Kind(of: "x", index: 99, type: 519, system: root.path) == .cellular)
    }

    @Test func sourceReadsTheLoopbackLink() throws {
        let state = try #require(LinkSource()).read(now: 0)
        let loopback = state.links.first { $0.kind == .loopback }
        #expect(state.isKnown && loopback?.name == "lo" && loopback?.isRunning == true && loopback?.hasIPv4 == true)
    }

    /// Otherwise each new observer would notify all others, which would look up their names again.
    @Test func readWithoutAReportIsNoChange() throws {
        let source = try #require(LinkSource(bus: ""))
        let first = source.read(now: 0)
        #expect(source.read(now: 1).revision == first.revision && source.deadline == Monotonic.never)
        #expect(!source.handle([], now: 2))
        #expect(source.read(now: 3).revision == first.revision)
        // A report without another change counts, because routes are not a part of the state.
        let netlink = try #require(source.waits.first)
        #expect(source.handle([netlink], now: 4))
        #expect(source.read(now: 5).revision > first.revision)
    }

    @Test func kernelKnowsTheRouteToThisMachine() {
        let route = KernelRoute(link: "lo", isLocal: true, source: [127, 0, 0, 1])
        #expect(KernelRoute.find(to: [127, 0, 0, 1]) == .route(route))
        #expect(KernelRoute.find(to: [127, 0, 0, 1], on: 1 << 30) == .noRoute, "an interface that does not exist")
        #expect(KernelRoute.number(ofLink: "lo") > 0 && KernelRoute.number(ofLink: "no-such-link") == 0)
    }

    @Test func rulesOfConnectionsDecideTheRoute() {
        let address: [UInt8] = [127, 0, 0, 1]
        var rules = SocketRules()
        #expect(rules.route(to: address) == KernelRoute.find(to: address))
        rules.forbidden = [.kind(.loopback)]
        #expect(rules.route(to: address) == .noRoute)
        rules.forbidden = [.kind(.wifi)]
        #expect(rules.route(to: address) != .noRoute)
        rules.localAddress = "127.0.0.1"
        #expect(rules.route(to: address) != .noRoute)
        rules.localAddress = "::1"
        #expect(rules.route(to: address) == .noRoute, "another family")
        rules.localAddress = nil
        rules.interface = "lo"
        #expect(rules.route(to: address) != .noRoute)
        #expect(rules.route(to: address, on: 1 << 30) == .noRoute)
        rules.interface = "no-such-link"
        #expect(rules.route(to: address) == .noRoute)
    }

    /// The local address that the kernel uses for a public address; nil without a route to the Internet.
    private static let outsideSource: [UInt8]? = {
        guard case .route(let route) = KernelRoute.find(to: [198, 41, 0, 4]) else { return nil }
        return route.source.isEmpty ? nil : route.source
    }()

    @Test(.enabled(if: outsideSource != nil, "no route to the Internet by IPv4"))
    func requestedLocalAddressIsTheSourceOfTheRoute() throws {
        let source = try #require(Self.outsideSource)
        let address: [UInt8] = [198, 41, 0, 4]
        #expect(KernelRoute.find(to: address, from: source) == KernelRoute.find(to: address))
        var rules = SocketRules()
        rules.localAddress = source.map { "\($0)" }.joined(separator: ".")
        #expect(rules.route(to: address) == KernelRoute.find(to: address))
    }

    // MARK: Name servers

    private static let resolverFiles: [(file: String?, upstream: String?, servers: [String])] = [
        (nil, nil, []), ("", nil, []), ("# nameserver 10.0.0.1\nsearch example.com\n", nil, []),
        ("nameserver 10.0.0.1\n", nil, ["10.0.0.1"]),
        ("options edns0\nnameserver\tfd00::1\nnameserver 10.0.0.1 \n", nil, ["fd00::1", "10.0.0.1"]),
        ("nameserver", nil, []), ("nameserver 127.0.0.53\n", nil, ["127.0.0.53"]),
        ("nameserver 127.0.0.53\n", "# No DNS servers known.\n", []),
        ("nameserver 127.0.0.53\n", "nameserver 10.0.0.1\n", ["10.0.0.1"]),
        ("nameserver 10.0.0.1\n", "# No DNS servers known.\n", ["10.0.0.1"]),
        (" nameserver 10.0.0.1", nil, ["10.0.0.1"]),
    ]

    @Test(arguments: LinkTests.resolverFiles.indices) func nameServersAreFound(_ index: Int) throws {
        let (row, folder) = (LinkTests.resolverFiles[index], try Folder())
        if let file = row.file { try folder.write(file, to: "resolv.conf") }
        if let upstream = row.upstream { try folder.write(upstream, to: "run/resolv.conf") }
        let files = NameServerFiles(
            file: "\(folder.path)/resolv.conf", upstream: "\(folder.path)/run/resolv.conf")
        #expect(files.servers == row.servers)
    }

    @Test func changesOfTheResolverConfigurationAreReported() throws {
        let folder = try Folder()
        try folder.write("nameserver 10.0.0.1\n", to: "real/stub-resolv.conf")
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder.path)/resolv.conf", withDestinationPath: "real/stub-resolv.conf")
        let files = NameServerFiles(file: "\(folder.path)/resolv.conf", upstream: "\(folder.path)/none/resolv.conf")
        #expect(!files.servers.isEmpty)
        #expect(!files.handle())
        try folder.write("", to: "hosts")
        #expect(!files.handle(), "changes of other files in the folder are not reported")
        try folder.write("# nothing\n", to: "real/stub-resolv.conf")
        #expect(files.handle())
        #expect(files.servers.isEmpty)
        // Programs replace the file by renaming another one.
        try folder.write("nameserver 10.0.0.2\n", to: "real/new")
        #expect(rename("\(folder.path)/real/new", "\(folder.path)/real/stub-resolv.conf") == 0)
        #expect(files.handle())
        #expect(!files.servers.isEmpty)
    }

    @Test func lostAndBrokenReportsCountAsChanges() {
        func report(_ mask: UInt32, _ name: String, length: UInt32? = nil) -> [UInt8] {
            let bytes = Array(name.utf8) + [0]
            return withUnsafeBytes(of: (Int32(1), mask, UInt32(0), length ?? UInt32(bytes.count))) { Array($0) } + bytes
        }
        #expect(!NameServerFiles.namesResolver([]))
        #expect(!NameServerFiles.namesResolver(report(UInt32(IN_CREATE), "passwd")[...]))
        #expect(NameServerFiles.namesResolver((report(8, "passwd") + report(8, "resolv.conf"))[...]))
        #expect(NameServerFiles.namesResolver(report(UInt32(IN_Q_OVERFLOW), "")[...]))
        #expect(NameServerFiles.namesResolver(report(8, "passwd", length: 4_000_000_000)[...]))
    }

    // MARK: The message bus

    @Test func closedBusIsConnectedAgainWithGrowingPauses() {
        let second: UInt64 = 1_000_000_000
        var now: UInt64 = 1000 * second
        var plan = Reconnection()
        var isDue = plan.isDue(at: now)
        #expect(isDue, "each reading is an attempt before the first connection")
        #expect(plan.next == Monotonic.never)
        plan.end(at: now)
        now += second
        plan.begin(at: now)
        var pauses: [UInt64] = []
        while plan.next != Monotonic.never {
            pauses.append((plan.next - now) / second)
            now = plan.next
            isDue = plan.isDue(at: now - 1)
            #expect(!isDue)
            isDue = plan.isDue(at: now)
            #expect(isDue)
        }
        #expect(pauses == [1, 2, 4, 8, 16, 32, 64, 128])
        isDue = plan.isDue(at: now + 1)
        #expect(isDue, "afterwards each reading is an attempt again")
        plan.end(at: now)
        plan.begin(at: now + second)
        #expect(plan.next == Monotonic.never, "a bus that closes each connection is not asked again and again")
        plan.end(at: now)
        plan.begin(at: now + Reconnection.stableTime)
        #expect(plan.next == now + Reconnection.stableTime + second)
    }
}
