// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct LinkTests {
    static let routes: [(v4: String, v6: String, expected: [String])] = [
        ("", "", []),
        (
            """
            Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
            eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t20\t00000000\t0\t0\t0
            eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
            """, "", ["wlan0", "eth0"]
        ),
        ("Iface\neth0\t00000000\t0101A8C0\t0002\t0\t0\t100\t00000000\t0\t0\t0", "", []),
        ("Iface\neth0\t00000000\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0", "", []),
        (
            "",
            """
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo
            fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth0
            """, ["eth1"]
        ),
    ]

    @Test(arguments: LinkTests.routes.indices)
    func defaultRoutesAreFoundByMetric(_ index: Int) {
        let row = LinkTests.routes[index]
        #expect(LinkState.defaultRoutes(v4: row.v4, v6: row.v6) == row.expected)
    }

    @Test func linkKindsAreReadFromDeviceFiles() throws {
        let files = FileManager.default
        let root = files.temporaryDirectory.appendingPathComponent("curlew-links-\(UUID())").path
        defer { try? files.removeItem(atPath: root) }
        let devices: [(name: String, type: String, uevent: String, folder: String?, kind: LinkState.Kind)] = [
            ("lo", "772", "", nil, .loopback), ("eth0", "1", "", nil, .ethernet), ("wlan0", "1", "", "wireless", .wifi),
            ("wlp2s0", "1", "", "phy80211", .wifi), ("wlx", "1", "DEVTYPE=wlan", nil, .wifi),
            ("wwan0", "1", "", nil, .cellular), ("cdc0", "1", "DEVTYPE=wwan", nil, .cellular),
            ("tun0", "65534", "", nil, .other),
        ]
        for device in devices {
            let place = "\(root)/\(device.name)"
            try files.createDirectory(atPath: place, withIntermediateDirectories: true)
            if let folder = device.folder {
                try files.createDirectory(atPath: "\(place)/\(folder)", withIntermediateDirectories: true)
            }
            try Data("\(device.type)\n".utf8).write(to: URL(filePath: "\(place)/type"))
            try Data("INTERFACE=\(device.name)\n\(device.uevent)\n".utf8).write(to: URL(filePath: "\(place)/uevent"))
            #expect(LinkState.kind(of: device.name, system: root) == device.kind, "\(device.name)")
        }
        #expect(LinkState.kind(of: "gone", system: root) == .other)
    }

    @Test func currentStateContainsTheLoopbackLink() {
        let loopback = LinkState.current().links.first { $0.kind == .loopback }
        #expect(loopback?.name == "lo")
        #expect(loopback?.isRunning == true)
        #expect(loopback?.hasAddress == true)
    }

    @Test func observersGetTheStateAtOnceAndEachChangeOnce() async {
        let state = Lock(LinkState(links: [], defaultLink: nil))
        let monitor = LinkMonitor { state.withLock { $0 } }
        let (states, continuation) = AsyncStream<LinkState>.makeStream()
        #expect(!monitor.isWatching)
        let number = monitor.observe { continuation.yield($0) }
        var changes = states.makeAsyncIterator()
        #expect(await changes.next()?.defaultLink == nil)
        #expect(monitor.isWatching)

        monitor.readAgain()
        state.withLock { $0.defaultLink = "eth7" }
        monitor.readAgain()
        #expect(await changes.next()?.defaultLink == "eth7")

        let (otherStates, otherContinuation) = AsyncStream<LinkState>.makeStream()
        let second = monitor.observe { otherContinuation.yield($0) }
        var other = otherStates.makeAsyncIterator()
        #expect(await other.next()?.defaultLink == "eth7")
        monitor.end(second)
        #expect(monitor.isWatching)
        monitor.end(number)
        #expect(!monitor.isWatching)
        monitor.end(number)
    }
}
