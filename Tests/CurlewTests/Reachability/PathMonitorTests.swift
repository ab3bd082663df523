// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewShims
import CurlewSupport
import CurlewTesting
import Glibc
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct PathMonitorTests {
    typealias Path = PathMonitor.Path

    @Test func currentPathIsDeliveredAtOnce() async throws {
        let session = Session()
        var iterator = session.path.makeAsyncIterator()
        let path = try #require(await iterator.next())
        #expect(path.interfaces.contains { $0.kind == .loopback && $0.isRunning && $0.hasAddress })
        #expect(path.isSatisfied == (path.outward != nil))
        #expect(path.isSatisfied == (path.obstacle == nil))
        #expect(path.isSatisfied == (path.supportsIPv4 || path.supportsIPv6))
        #expect(await PathMonitor().current == path)
    }

    @Test func cancellationEndsPathUpdates() async {
        let observer = Task {
            var count = 0
            for await _ in Session.shared.path { count += 1 }
            return count
        }
        observer.cancel()
        _ = await observer.value
    }

    @Test func pathToThisMachineUsesTheLoopbackInterface() async throws {
        let path = try await PathMonitor(address: "127.0.0.1").current
        #expect(path.isSatisfied && path.supportsIPv4 && !path.supportsIPv6)
        #expect(path.outward?.kind == .loopback && path.reachability == .viaWiFi)
        #expect(await PathMonitor(host: "[::1]").current.status != .unknown)
    }

    @Test(arguments: ["", "example.com", "127.1", "::1%", "10.0.0.1%eth0", "fe80::1%eth0%1 ", "[::1]"])
    func invalidAddressIsRefused(_ text: String) throws {
        if text == "fe80::1%eth0%1 " {
            // The kernel permits such a name of an interface.
            _ = try PathMonitor(address: text)
            return
        }
        let error = #expect(throws: NetworkError.self) { try PathMonitor(address: text) }
        #expect(error?.kind == .invalidRequest)
    }

    @Test func addressOnAMissingLinkHasNoRoute() async throws {
        #expect(try await PathMonitor(address: "fe80::1").current.isSatisfied == false, "the interface is missing")
        let path = try await PathMonitor(address: "fe80::1%no-such-link").current
        #expect(path.status == .unsatisfied && path.obstacle == .noRoute)
    }

    // MARK: Rules

    private static let eth = LinkState.Link(name: "eth0", kind: .ethernet)
    private static let wwan = LinkState.Link(name: "wwan0", kind: .cellular, hasIPv6: true)
    private static let down = LinkState.Link(name: "eth1", kind: .ethernet, isRunning: false)
    private static let lo = LinkState.Link(name: "lo", kind: .loopback)
    private static let links = [eth, down, lo, wwan]

    private static func route(
        _ link: String, _ source: [UInt8] = [192, 0, 2, 1], isLocal: Bool = false
    ) -> KernelRoute.Answer {
        .route(KernelRoute(link: link, isLocal: isLocal, source: source))
    }

    private static let global6: [UInt8] = [0x20, 0x01] + [UInt8](repeating: 1, count: 14)
    private static let local6: [UInt8] = [0xFE, 0x80] + [UInt8](repeating: 1, count: 14)

    private static let vpn = LinkState.Link(name: "wg0", kind: .vpn)
    private static let wifi = LinkState.Link(name: "wlan0", kind: .wifi)
    private static let lostWifi = LinkState.Link(name: "wlan0", kind: .wifi, isRunning: false)

    struct Row: Sendable {
        var links: [LinkState.Link] = PathMonitorTests.links
        var scope = Path.Scope.outside
        let answers: [KernelRoute.Answer]
        let status: Path.Status
        var obstacle: Path.Obstacle?
        var outward: String?
        var reachability: Path.Reachability
    }

    static let rows: [Row] = [
        Row(answers: [.noRoute, .noRoute], status: .unsatisfied, obstacle: .noRoute, reachability: .notReachable),
        Row(
            answers: [.failed(errno: EPERM), .failed(errno: EPERM)], status: .unknown, obstacle: .noAnswer,
            reachability: .unknown),
        Row(
            answers: [.failed(errno: ENOMEM), .noRoute], status: .unknown, obstacle: .noAnswer, reachability: .unknown),
        Row(
            answers: [.failed(errno: ENOMEM), route("wwan0", global6)], status: .satisfied, outward: "wwan0",
            reachability: .viaWWAN),
        Row(answers: [route("eth0"), .noRoute], status: .satisfied, outward: "eth0", reachability: .viaWiFi),
        Row(
            answers: [.noRoute, route("wwan0", global6)], status: .satisfied, outward: "wwan0", reachability: .viaWWAN),
        Row(
            answers: [route("eth0"), route("wwan0", global6)], status: .satisfied, outward: "eth0",
            reachability: .viaWiFi),
        Row(
            answers: [route("eth1"), .noRoute], status: .unsatisfied, obstacle: .linkDown, reachability: .notReachable),
        Row(
            answers: [route("eth1"), route("wwan0", global6)], status: .satisfied, outward: "wwan0",
            reachability: .viaWWAN),
        Row(
            answers: [route("eth0", []), .noRoute], status: .unsatisfied, obstacle: .noAddress,
            reachability: .notReachable),
        Row(
            answers: [route("eth0", [0, 0, 0, 0]), route("eth1", global6)], status: .unsatisfied, obstacle: .noAddress,
            reachability: .notReachable),
        Row(
            answers: [route("eth0", [169, 254, 3, 4]), .noRoute], status: .unsatisfied, obstacle: .noAddress,
            reachability: .notReachable),
        Row(
            answers: [.noRoute, route("eth0", local6)], status: .unsatisfied, obstacle: .noAddress,
            reachability: .notReachable),
        Row(answers: [route("lo"), .noRoute], status: .unsatisfied, obstacle: .noRoute, reachability: .notReachable),
        Row(answers: [route("gone"), .noRoute], status: .unsatisfied, obstacle: .noRoute, reachability: .notReachable),
        Row(
            scope: .addresses([PathTarget([127, 0, 0, 1])]), answers: [route("lo", [127, 0, 0, 1], isLocal: true)],
            status: .satisfied, outward: "lo", reachability: .viaWiFi),
        Row(
            scope: .addresses([PathTarget([169, 254, 0, 9])]), answers: [route("eth0", [169, 254, 3, 4])],
            status: .satisfied, outward: "eth0", reachability: .viaWiFi),
        Row(
            scope: .addresses([PathTarget(local6, link: "eth0")]), answers: [route("eth0", local6)],
            status: .satisfied, outward: "eth0", reachability: .viaWiFi),
        Row(
            scope: .addresses([PathTarget([10, 0, 0, 1])]), answers: [route("eth0", [169, 254, 3, 4])],
            status: .unsatisfied, obstacle: .noAddress, reachability: .notReachable),
        Row(scope: .addresses([]), answers: [], status: .unknown, reachability: .unknown),
        // A VPN keeps its routes when the network below is gone.
        Row(
            links: [lo, vpn, wifi], answers: [route("wg0"), .noRoute], status: .satisfied, outward: "wg0",
            reachability: .viaWiFi),
        Row(
            links: [lo, vpn, lostWifi], answers: [route("wg0"), .noRoute], status: .unsatisfied, obstacle: .linkDown,
            reachability: .notReachable),
        Row(
            links: [lo, vpn], answers: [route("wg0"), .noRoute], status: .satisfied, outward: "wg0",
            reachability: .viaWiFi),
    ]

    @Test(arguments: PathMonitorTests.rows.indices) func pathFollowsFromRoutes(_ index: Int) {
        let row = PathMonitorTests.rows[index]
        let state = LinkState(links: row.links, nameServers: ["192.0.2.53"], isMetered: true)
        let path = Path(state, row.scope, row.answers)
        #expect(path.status == row.status && path.obstacle == row.obstacle)
        #expect(path.outward?.name == row.outward && path.reachability == row.reachability)
        #expect(path.interfaces.map(\.name) == row.links.map(\.name))
        #expect(path.hasDNS && path.isMetered == true)
        #expect(path.isSatisfied == (path.supportsIPv4 || path.supportsIPv6))
        let unknown = Path(LinkState.unknown, row.scope, row.answers)
        #expect(unknown.status == .unknown && unknown.obstacle == .noAnswer && unknown.reachability == .unknown)
    }

    @Test func pathsHaveTheNumbersAndTextsOfAFNetworking() {
        let texts = Path.Reachability.allCases.map { "\($0.rawValue) \($0)" }
        #expect(texts == ["-1 Unknown", "0 Not Reachable", "1 Reachable via WWAN", "2 Reachable via WiFi"])
        let wifi = Path.Interface("wlan0", kind: .wifi)
        #expect("\(Path(.satisfied, outward: wifi))" == "connected by wlan0 (wifi)")
        #expect(
            "\(Path(.satisfied, outward: wifi, hasDNS: false, isMetered: true))"
                == "connected by wlan0 (wifi, metered, without DNS)")
        #expect("\(Path(.unsatisfied, obstacle: .linkDown))" == "not connected: the link is down")
        #expect("\(Path.unknown)" == "unknown")
    }

    // MARK: Hosts and probes

    /// A kernel whose routes a test sets.
    private final class Kernel: Sendable {
        let routes = Lock<[[UInt8]: KernelRoute.Answer]>([:])
        private let revision = Lock<UInt64>(0)
        private let changed = Signal()
        private let descriptor = curlew_eventfd_create()
        deinit { close(descriptor) }

        func set(_ address: [UInt8], _ answer: KernelRoute.Answer) {
            routes.withLock { $0[address] = answer }
            report()
        }

        func report() {
            revision.withLock { $0 += 1 }
            eventfd_write(descriptor, 1)
        }

        private final class Source: KernelSource {
            let kernel: Kernel
            init(_ kernel: Kernel) { self.kernel = kernel }
            var waits: [KernelWait] { [KernelWait(kernel.descriptor, POLLIN)] }
            func handle(_ ready: [KernelWait], now: UInt64) -> Bool {
                var value = eventfd_t()
                return eventfd_read(kernel.descriptor, &value) == 0
            }
            func read(now: UInt64) -> LinkState {
                LinkState(
                    links: PathMonitorTests.links, nameServers: ["192.0.2.53"],
                    revision: kernel.revision.withLock { $0 })
            }
        }

        func source(_ scope: Path.Scope = .outside) -> PathSource {
            PathSource(scope, KernelMonitor("curlew-test", spacing: 0, unknown: .unknown) { Source(self) }) { target in
                self.routes.withLock { $0[target.bytes] ?? .noRoute }
            }
        }
    }

    /// A name service whose answers a test sets.
    private final class Names: Sendable {
        private let answer: Lock<EngineResolver.Outcome>
        let asked = Signal()
        let gate: Gate?

        init(_ answer: EngineResolver.Outcome, gate: Gate? = nil) {
            self.answer = Lock(answer)
            self.gate = gate
        }

        func set(_ new: EngineResolver.Outcome) { answer.withLock { $0 = new } }

        var resolver: EngineResolver {
            .asynchronous { [self] _ in
                asked.send()
                if let gate { _ = await gate.wait() }
                return answer.withLock { $0 }
            }
        }
    }

    @Test func addressMonitorFollowsTheRouteToItsAddress() async throws {
        let kernel = Kernel()
        let monitor = PathMonitor(kernel.source(.addresses([PathTarget([10, 0, 0, 7])])))
        var paths = monitor.makeAsyncIterator()
        #expect(await paths.next()?.obstacle == .noRoute)
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        kernel.set([10, 0, 0, 7], Self.route("eth0"))
        #expect(await paths.next()?.outward?.name == "eth0")
        kernel.report()
        kernel.set([10, 0, 0, 7], Self.route("wwan0"))
        #expect(await paths.next()?.outward?.name == "wwan0", "equal paths are sent once")
    }

    @Test func hostIsLookedUpAgainAfterEachChange() async {
        let (kernel, names) = (Kernel(), Names(.success(["192.0.2.1"])))
        kernel.set([192, 0, 2, 1], Self.route("eth0"))
        let monitor = PathMonitor(host: "www.example.com.", resolver: names.resolver, kernel.source())
        var paths = monitor.makeAsyncIterator()
        var path = await paths.next()
        // The reader may miss the path before the end of the look-up.
        if path?.status == .unknown { path = await paths.next() }
        #expect(path?.outward?.name == "eth0")
        names.set(.success(["192.0.2.2"]))
        kernel.routes.withLock { $0[[192, 0, 2, 2]] = Self.route("wwan0") }
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        while path?.outward?.name != "wwan0" { path = await paths.next() }
        #expect(path?.isSatisfied == true)
    }

    @Test func reportsAboutOtherRoutesLeadToNoLookUp() {
        let kernel = Kernel()
        kernel.set([192, 0, 2, 1], Self.route("eth0"))
        let check = HostCheck("www.example.com", Names(.success([])).resolver, kernel.source())
        var state = LinkState(links: Self.links, nameServers: ["192.0.2.53"])
        #expect(check.hasChanged(state) && !check.hasChanged(state))
        state.revision += 1
        kernel.set([10, 0, 0, 7], Self.route("eth0"))
        #expect(!check.hasChanged(state))
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        #expect(check.hasChanged(state) && !check.hasChanged(state))
        state.nameServers = []
        #expect(check.hasChanged(state))
        state.links.removeLast()
        #expect(check.hasChanged(state) && !check.hasChanged(state))
    }

    /// A failed look-up says nothing about a name while no name server can be asked.
    @Test func nameServiceNeedsARouteToAServer() {
        let kernel = Kernel()
        let source = kernel.source()
        var state = LinkState(links: [Self.lo, Self.down], nameServers: ["192.0.2.53"])
        #expect(!source.hasNameService(state))
        state.links.append(Self.eth)
        kernel.set([192, 0, 2, 53], Self.route("eth0"))
        #expect(source.hasNameService(state), "a network without a route to the Internet")
        state.nameServers = []
        #expect(!source.hasNameService(state))
        for local in ["127.0.0.11", "::1"] {
            state.nameServers = [local]
            state.links = [Self.lo, Self.eth]
            #expect(source.hasNameService(state))
            state.links = [Self.lo, Self.down]
            #expect(!source.hasNameService(state))
        }
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        state.links = [Self.lo, Self.eth]
        state.nameServers = []
        #expect(source.hasNameService(state))
    }

    @Test func hostIsUnknownUntilTheFirstLookUpHasEnded() async {
        let gate = Gate()
        let (kernel, names) = (Kernel(), Names(.success(["192.0.2.1"]), gate: gate))
        kernel.set([192, 0, 2, 1], Self.route("eth0"))
        var paths = PathMonitor(host: "www.example.com", resolver: names.resolver, kernel.source()).makeAsyncIterator()
        #expect(await paths.next()?.status == .unknown)
        gate.open()
        #expect(await paths.next()?.status == .satisfied)
    }

    @Test func currentPathIsThatAfterTheLookUpAndTheProbe() async {
        let (kernel, names) = (Kernel(), Names(.success(["192.0.2.1"])))
        kernel.set([192, 0, 2, 1], Self.route("eth0"))
        let monitor = PathMonitor(host: "www.example.com", resolver: names.resolver, kernel.source())
        #expect(await monitor.current.isSatisfied)
        #expect(await monitor.probing(PathMonitor.Probe { $0.isSatisfied }).current.isSatisfied)
        #expect(await monitor.probing(PathMonitor.Probe { _ in false }).current.obstacle == .probeFailed)
        #expect(names.asked.count == 3)
        names.set(.failure(.unknown("no such name")))
        #expect(await monitor.probing(PathMonitor.Probe { _ in true }).current.obstacle == .noRoute)
    }

    @Test func failedLookUpIsRepeatedAndExplained() async {
        let (kernel, names) = (Kernel(), Names(.failure(.unknown("no such name"))))
        let monitor = PathMonitor(host: "www.example.com", resolver: names.resolver, kernel.source())
        var paths = monitor.makeAsyncIterator()
        var path = await paths.next()
        if path?.status == .unknown { path = await paths.next() }
        #expect(path?.obstacle == .noRoute, "the machine has no route to the Internet")
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        path = await paths.next()
        // The failure without a connection says nothing about the name.
        if path?.status == .unknown { path = await paths.next() }
        #expect(path?.obstacle == .nameNotResolved && path?.outward == nil && path?.supportsIPv4 == false)
        // Without a change of the network: the second attempt follows after a second.
        kernel.routes.withLock { $0[[192, 0, 2, 1]] = Self.route("eth0") }
        names.set(.success(["192.0.2.1"]))
        #expect(await paths.next()?.isSatisfied == true)
    }

    @Test func failureWithoutAConnectionIsForgottenWithIt() async {
        let kernel = Kernel()
        let check = HostCheck("www.example.com", Names(.failure(.unknown("no such name"))).resolver, kernel.source())
        let state = LinkState(links: PathMonitorTests.links)
        #expect(await !check.run(state))
        #expect(check.path(state).obstacle == .noRoute)
        kernel.set([198, 41, 0, 4], Self.route("eth0"))
        #expect(check.path(state).status == .unknown, "the name is being looked up again")
        #expect(await !check.run(state))
        #expect(check.path(state).obstacle == .nameNotResolved)
    }

    @Test func endOfTheReaderWithdrawsTheLookUp() async {
        let (kernel, gate) = (Kernel(), Gate())
        let names = Names(.success(["192.0.2.1"]), gate: gate)
        let resolver = names.resolver
        let source = kernel.source()
        let reader = Task {
            for await path in PathMonitor(host: "www.example.com", resolver: resolver, source) where path.isSatisfied {}
        }
        _ = await names.asked.wait(after: 0)
        reader.cancel()
        await reader.value
        while source.monitor.isWatching || resolver.pending > 0 { await Task.yield() }
        gate.open()
    }

    @Test func probeDecidesWhetherASatisfiedPathWorks() async {
        let network = Simulated(Path(.unsatisfied, obstacle: .noRoute))
        let (works, probes) = (Lock(false), Signal())
        let monitor = network.monitor.probing(
            PathMonitor.Probe { _ in
                probes.send()
                return works.withLock { $0 }
            })
        var paths = monitor.makeAsyncIterator()
        #expect(await paths.next()?.obstacle == .noRoute)
        #expect(probes.count == 0, "an unsatisfied path is not probed")
        let eth = Path.Interface("eth0")
        network.value = Path(.satisfied, outward: eth)
        var path = await paths.next()
        if path?.status == .unknown { path = await paths.next() }
        #expect(path?.obstacle == .probeFailed && path?.outward == eth)
        works.withLock { $0 = true }
        #expect(await paths.next()?.isSatisfied == true, "a failed probe is repeated")
        network.value = Path(.unsatisfied, obstacle: .linkDown)
        #expect(await paths.next()?.obstacle == .linkDown)
    }
}
