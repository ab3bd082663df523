// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Reads the interfaces, and waits for changes of interfaces, addresses, routes, routing rules, name servers, and of
/// the metered state of the connection.
final class LinkSource: KernelSource {
    private let netlink: CInt
    private let names = NameServerFiles()
    private let bus: String
    /// The conversation with NetworkManager; nil without a message bus.
    private var metered: MeteredSource?
    private var reconnection = Reconnection()
    /// Differs between the sources of a process and its forks, whose observers may know a state of an earlier source.
    private var revision = Monotonic.now()
    /// The time of the next attempt after the kernel did not answer, such as without descriptors.
    private var nextReading = Monotonic.never
    /// The interfaces since their last change; nil after a change.
    private var links: [LinkState.Link]?
    /// The kinds of the known interfaces; the kind of an interface never changes.
    private var kinds: [Identity: LinkState.Kind] = [:]

    /// The time in nanoseconds within which a new connection to the message bus should give the first value, so that
    /// the first state has it.
    static let patience: UInt64 = 100_000_000
    /// The time in nanoseconds between two attempts to read the kernel's tables.
    static let pause: UInt64 = 1_000_000_000

    private struct Identity: Hashable {
        let index: UInt32
        let name: String
    }

    /// Creates a source; nil if the system does not permit netlink sockets.
    ///
    /// - Parameter bus: The address of the message bus.
    init?(bus: String = MeteredSource.systemAddress) {
        self.bus = bus
        netlink = curlew_netlink_open()
        if netlink < 0 { return nil }
    }

    deinit { close(netlink) }

    var deadline: UInt64 { min(nextReading, reconnection.next) }

    /// Connects to the message bus, unless there is a connection, and again for a while after the bus has closed it.
    private func connect(now: UInt64) {
        if let metered {
            guard metered.isClosed else { return }
            self.metered = nil
            return reconnection.begin(at: now)
        }
        guard reconnection.isDue(at: now) else { return }
        metered = MeteredSource(address: bus)
        guard let metered else { return }
        reconnection.end(at: now)
        metered.waitForValue(until: Monotonic.now() + Self.patience)
        if metered.isClosed {
            self.metered = nil
            reconnection.begin(at: now)
        }
    }

    var waits: [KernelWait] {
        var waits = [KernelWait(netlink, POLLIN)]
        if names.descriptor >= 0 { waits.append(KernelWait(names.descriptor, POLLIN)) }
        if let metered, !metered.isClosed { waits.append(KernelWait(metered.descriptor, CInt(metered.events))) }
        return waits
    }

    func handle(_ ready: [KernelWait], now: UInt64) -> Bool {
        var hasChanged = false
        for wait in ready {
            if wait.descriptor == netlink {
                if curlew_netlink_drain(netlink) { links = nil }
                hasChanged = true
            } else if wait.descriptor == names.descriptor, names.handle() {
                hasChanged = true
            } else if let metered, wait.descriptor == metered.descriptor {
                let before = metered.isMetered
                metered.handle()
                if metered.isMetered != before || metered.isClosed { hasChanged = true }
            }
        }
        if hasChanged { revision += 1 }
        return hasChanged
    }

    func read(now: UInt64) -> LinkState {
        connect(now: now)
        guard let links = links ?? readLinks(), Self.canAsk else {
            nextReading = now + Self.pause
            return .unknown
        }
        self.links = links
        nextReading = Monotonic.never
        return LinkState(
            links: links, nameServers: names.servers, isMetered: metered?.isMetered, revision: revision)
    }

    /// Whether the process has the means to ask about routes, which observers do for each state.
    ///
    /// Without this check, a lack of descriptors at that time would leave paths unknown until the next report. A
    /// permission that is missing is missing later, too.
    private static var canAsk: Bool {
        guard case .failed(let code) = KernelRoute.find(to: [127, 0, 0, 1]) else { return true }
        return ![EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code)
    }

    /// Reads the interfaces from the kernel's tables; nil when that fails.
    private func readLinks() -> [LinkState.Link]? {
        let tables = KernelTables()
        guard tables.read() == 0 else { return nil }
        var known: [Identity: LinkState.Kind] = [:]
        // Addresses that are valid on one link only have the scope 253.
        let usable = tables.addresses.filter { $0.scope != 253 }
        let hasIPv4 = Set(usable.filter { $0.count == 4 }.map(\.index))
        let hasIPv6 = Set(usable.filter { $0.count == 16 }.map(\.index))
        var links: [LinkState.Link] = []
        for link in tables.links {
            let identity = Identity(index: link.index, name: text(link.name))
            let kind =
                kinds[identity]
                ?? LinkState.Kind(
                    of: identity.name, index: link.index, type: Int(link.type), driver: text(link.kind))
            known[identity] = kind
            let running = UInt32(IFF_UP | IFF_RUNNING)
            links.append(
                LinkState.Link(
                    name: identity.name, kind: kind, isRunning: link.flags & running == running,
                    hasIPv4: hasIPv4.contains(link.index), hasIPv6: hasIPv6.contains(link.index)))
        }
        kinds = known
        return links.sorted { $0.name < $1.name }
    }
}

/// The times at which to connect to a message bus again that has closed the connection, such as for an update.
struct Reconnection: Sendable {
    /// The time of the next attempt; `Monotonic.never` when none is planned.
    private(set) var next = Monotonic.never
    private var attempts = 0
    private var connectedAt: UInt64 = 0

    /// The number of attempts, after 1, 2, 4 … 128 s; after these, each reading is an attempt.
    static let maximumAttempts = 8
    /// A connection that lasted as long, in nanoseconds, makes the next wait short again.
    static let stableTime: UInt64 = 300_000_000_000

    /// Plans an attempt after the bus has closed the connection.
    mutating func begin(at now: UInt64) {
        if now &- connectedAt >= Self.stableTime { attempts = 0 }
        plan(at: now)
    }

    /// Whether to connect now; plans the next attempt in case that this one fails.
    mutating func isDue(at now: UInt64) -> Bool {
        if next == Monotonic.never { return attempts == 0 || attempts > Self.maximumAttempts }
        guard now >= next else { return false }
        plan(at: now)
        return true
    }

    /// Plans no attempt, since a connection was made.
    mutating func end(at now: UInt64) {
        next = Monotonic.never
        connectedAt = now
    }

    private mutating func plan(at now: UInt64) {
        attempts += 1
        next = attempts > Self.maximumAttempts ? Monotonic.never : now + 1_000_000_000 << UInt64(attempts - 1)
    }
}

/// The kernel's tables of interfaces and addresses at one instant.
private final class KernelTables {
    var links: [curlew_link] = []
    var addresses: [curlew_link_address] = []

    /// Reads the tables, up to three times if they change meanwhile; returns 0 or errno.
    func read() -> CInt {
        for _ in 0..<3 {
            (links, addresses) = ([], [])
            let code = readOnce()
            if code != EAGAIN { return code }
        }
        // Another change is reported, after which the caller reads the tables again.
        return 0
    }

    private func readOnce() -> CInt {
        curlew_netlink_read(
            Unmanaged.passUnretained(self).toOpaque(),
            { context, link in
                guard let context, let link else { return }
                Unmanaged<KernelTables>.fromOpaque(context).takeUnretainedValue().links.append(link.pointee)
            },
            { context, address in
                guard let context, let address else { return }
                Unmanaged<KernelTables>.fromOpaque(context).takeUnretainedValue().addresses.append(address.pointee)
            })
    }
}

/// The files that name the servers of the system's resolver (resolv.conf(5)).
final class NameServerFiles {
    /// The descriptor that reports changes of the files; -1 without one.
    let descriptor = inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC))
    private let file: String
    private let upstream: String

    /// Creates a reader of the files.
    ///
    /// - Parameters:
    ///   - file: The configuration of the resolver.
    ///   - upstream: The servers that systemd-resolved asks; `file` names only its own address.
    init(file: String = "/etc/resolv.conf", upstream: String = "/run/systemd/resolve/resolv.conf") {
        self.file = file
        self.upstream = upstream
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The addresses of the servers in the files; watches the folders of the files from the first use on.
    var servers: [String] {
        watch()
        let servers = Self.servers(in: SmallFile.text(at: file))
        guard servers.allSatisfy({ $0 == "127.0.0.53" || $0 == "127.0.0.54" }), !servers.isEmpty,
            access(upstream, R_OK) == 0
        else { return servers }
        return Self.servers(in: SmallFile.text(at: upstream))
    }

    /// Returns the addresses of the servers in a file.
    static func servers(in text: String) -> [String] {
        text.split(separator: "\n").compactMap { line in
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            return words.count > 1 && words[0] == "nameserver" ? String(words[1]) : nil
        }
    }

    /// Watches the folders, because programs replace the files; repeated calls are harmless.
    private func watch() {
        guard descriptor >= 0 else { return }
        var folders: Set<String> = [folder(of: file), folder(of: upstream)]
        if let place = realpath(file, nil) {
            folders.insert(folder(of: String(cString: place)))
            free(place)
        }
        let changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE
        for folder in folders { inotify_add_watch(descriptor, folder, UInt32(changes)) }
    }

    private func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    }

    /// Reads the reports of changes; returns whether a report is about a file of the resolver.
    func handle() -> Bool {
        var isOurs = false
        var bytes = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = read(descriptor, &bytes, bytes.count)
            guard count > 0 else { return isOurs }
            if Self.namesResolver(bytes[..<count]) { isOurs = true }
        }
    }

    /// Whether a report of inotify(7) names a file of the resolver, or lost reports.
    static func namesResolver(_ reports: ArraySlice<UInt8>) -> Bool {
        var rest = reports
        // wd, mask, cookie and the length of the name, 4 bytes each.
        while rest.count >= 16 {
            func word(_ offset: Int) -> UInt32 {
                rest.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
            }
            let mask = word(4)
            let length = Int(word(12))
            guard rest.count >= 16 + length else { return true }
            let name = rest.dropFirst(16).prefix(length).prefix { $0 != 0 }
            if mask & UInt32(IN_Q_OVERFLOW) != 0 || String(decoding: name, as: UTF8.self).hasSuffix("resolv.conf") {
                return true
            }
            rest = rest.dropFirst(16 + length)
        }
        return false
    }
}
