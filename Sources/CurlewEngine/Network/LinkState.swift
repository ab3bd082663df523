// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Network: the state of the machine's interfaces, read from the kernel and reported at each change. The process has one
// thread for this, which runs only while there are observers.

internal import CurlewShims
internal import Glibc

/// The machine's interfaces and its default route at one instant.
package struct LinkState: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable { case loopback, ethernet, wifi, cellular, other }

    package struct Link: Sendable, Hashable {
        package var name: String
        package var kind: Kind
        /// Whether the interface is up and has a carrier.
        package var isRunning: Bool
        package var hasAddress: Bool
    }

    package var links: [Link]
    /// The running interface of the best default route, never the loopback; nil without such a route.
    package var defaultLink: String?

    /// Reads the current state from the kernel.
    package static func current() -> LinkState {
        let links = readLinks()
        let routes = defaultRoutes(v4: read("/proc/net/route"), v6: read("/proc/net/ipv6_route"))
        let usable = Set(links.filter { $0.isRunning && $0.hasAddress && $0.kind != .loopback }.map(\.name))
        return LinkState(links: links, defaultLink: routes.first { usable.contains($0) })
    }

    /// Returns the interfaces of default routes, best metric first, from the text of the kernel's tables.
    static func defaultRoutes(v4: String, v6: String) -> [String] {
        var routes: [(metric: UInt, name: String)] = []
        for line in v4.split(separator: "\n").dropFirst() {
            let columns = line.split(whereSeparator: \.isWhitespace)
            guard columns.count >= 8, columns[1] == "00000000", columns[7] == "00000000",
                let flags = UInt(columns[3], radix: 16), flags & 1 != 0
            else { continue }
            routes.append((UInt(columns[6]) ?? 0, String(columns[0])))
        }
        for line in v6.split(separator: "\n") {
            let columns = line.split(whereSeparator: \.isWhitespace)
            // An "unreachable" route has the flag RTF_REJECT (0x0200).
            guard columns.count >= 10, columns[0].allSatisfy({ $0 == "0" }), columns[1] == "00",
                let flags = UInt(columns[8], radix: 16), flags & 1 != 0, flags & 0x0200 == 0
            else { continue }
            routes.append((UInt(columns[5], radix: 16) ?? 0, String(columns[9])))
        }
        return routes.sorted { $0.metric < $1.metric }.map(\.name)
    }

    private static func readLinks() -> [Link] {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var links: [String: Link] = [:]
        var next = first
        while let entry = next?.pointee {
            let name = String(cString: entry.ifa_name)
            let flags = CInt(bitPattern: entry.ifa_flags)
            let running = CInt(IFF_UP | IFF_RUNNING)
            var link = links[name] ?? Link(name: name, kind: kind(of: name, flags), isRunning: false, hasAddress: false)
            link.isRunning = flags & running == running
            if let family = entry.ifa_addr?.pointee.sa_family, family == AF_INET || family == AF_INET6 {
                link.hasAddress = true
            }
            links[name] = link
            next = entry.ifa_next
        }
        return links.values.sorted { $0.name < $1.name }
    }

    private static func kind(of name: String, _ flags: CInt) -> Kind {
        flags & CInt(IFF_LOOPBACK) != 0 ? .loopback : kind(of: name)
    }

    /// Returns the kind of an interface of this machine.
    static func kind(of name: String) -> Kind { kind(of: name, system: "/sys/class/net") }

    /// Returns the kind of an interface, according to the kernel's device files under `system`.
    static func kind(of name: String, system: String) -> Kind {
        let place = "\(system)/\(name)"
        let device = read("\(place)/uevent")
        let type = read("\(place)/type").split(separator: "\n").first.flatMap { Int($0) }
        if type == 772 { return .loopback }
        if access("\(place)/wireless", F_OK) == 0 || access("\(place)/phy80211", F_OK) == 0 { return .wifi }
        if device.split(separator: "\n").contains("DEVTYPE=wlan") { return .wifi }
        if name.hasPrefix("wwan") || device.split(separator: "\n").contains("DEVTYPE=wwan") { return .cellular }
        return type == 1 ? .ethernet : .other
    }

    private static func read(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 << 10)
        while text.count < 1 << 20 {
            let count = Glibc.read(descriptor, &piece, piece.count)
            guard count > 0 else { break }
            text.append(contentsOf: piece[..<count])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
