// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Network: the machine's interfaces and routes, as the kernel reports them, name servers, and the metered state.

internal import CurlewShims
internal import Glibc

/// The machine's interfaces and name servers at one instant.
package struct LinkState: Sendable, Hashable {
    package enum Kind: String, Sendable, CaseIterable { case loopback, ethernet, wifi, cellular, vpn, other }

    package struct Link: Sendable, Hashable {
        package var name: String
        package var kind: Kind
        /// Whether the interface is up and has a carrier.
        package var isRunning: Bool
        /// Whether the interface has an IPv4 address whose scope is wider than one link, or that of a loopback
        /// interface.
        package var hasIPv4: Bool
        /// Whether the interface has an IPv6 address whose scope is wider than one link, or that of a loopback
        /// interface.
        package var hasIPv6: Bool

        package init(
            name: String, kind: Kind, isRunning: Bool = true, hasIPv4: Bool = true, hasIPv6: Bool = false
        ) {
            self.name = name
            self.kind = kind
            self.isRunning = isRunning
            self.hasIPv4 = hasIPv4
            self.hasIPv6 = hasIPv6
        }
    }

    /// All interfaces, sorted by name.
    package var links: [Link]
    /// The addresses of the servers in the resolver's configuration, or those that systemd-resolved asks.
    package var nameServers: [String]
    /// Whether the connection is metered, according to NetworkManager; nil if that is unknown.
    package var isMetered: Bool?
    /// False if the system does not permit netlink sockets.
    package var isKnown: Bool
    /// Grows with each report of the kernel, since routes may change while the other members stay equal.
    package var revision: UInt64

    package init(
        links: [Link] = [], nameServers: [String] = [], isMetered: Bool? = nil, isKnown: Bool = true,
        revision: UInt64 = 0
    ) {
        self.links = links
        self.nameServers = nameServers
        self.isMetered = isMetered
        self.isKnown = isKnown
        self.revision = revision
    }

    /// The state if the system does not permit netlink sockets.
    package static let unknown = LinkState(isKnown: false)

    /// The monitor of the process.
    package static let monitor = KernelMonitor<LinkState>("curlew-links", unknown: .unknown) { LinkSource() }
}

extension LinkState.Kind {
    /// The properties of an interface from which its kind follows.
    struct Facts {
        /// ARPHRD_… of linux/if_arp.h.
        var type: Int
        /// The driver of a virtual interface.
        var driver = ""
        /// The value of DEVTYPE in the device's `uevent` file.
        var device = ""
        var hasWirelessFiles = false
        var hasTunnelFiles = false
    }

    /// The drivers of tunnels.
    private static let tunnels: Set<String> = [
        "tun", "wireguard", "ipip", "ip6tnl", "sit", "gre", "gretap", "ip6gre", "ip6gretap", "vti", "vti6", "xfrm",
        "ovpn", "pptp", "erspan",
    ]

    /// Returns the kind of an interface.
    init(_ name: String, _ facts: Facts) {
        switch facts.type {
        case 772: self = .loopback
        case 801...805: self = .wifi
        case _ where facts.hasWirelessFiles || facts.device == "wlan": self = .wifi
        case _ where name.hasPrefix("wwan") || facts.device == "wwan" || facts.driver == "wwan": self = .cellular
        // ARPHRD_RAWIP: modems that pass IP packets.
        case 519: self = .cellular
        // TAP devices look like a cable: most of them connect virtual machines and containers.
        case 1 where facts.hasTunnelFiles || facts.driver == "tun": self = .ethernet
        case _ where facts.hasTunnelFiles || Self.tunnels.contains(facts.driver) || facts.device == "wireguard":
            self = .vpn
        // Tunnels over IPv4 and IPv6, SIT, GRE, and interfaces without a link layer.
        case 768, 769, 776, 778, 823, 65534: self = .vpn
        case 1: self = .ethernet
        default: self = .other
        }
    }

    /// Returns the kind of an interface of this machine, according to the device files of the kernel.
    ///
    /// - Parameters:
    ///   - name: The name of the interface.
    ///   - index: Its number; device files of another number belong to another network namespace and are ignored. Nil
    ///     for any number.
    ///   - type: Its ARPHRD_…; nil to read it from the files.
    ///   - driver: Its driver, if it is virtual.
    ///   - system: The folder of the files.
    init(
        of name: String, index: UInt32? = nil, type: Int? = nil, driver: String = "", system: String = "/sys/class/net"
    ) {
        let place = "\(system)/\(name)"
        func number(_ file: String) -> Int? {
            SmallFile.text(at: "\(place)/\(file)").split(separator: "\n").first.flatMap { Int($0) }
        }
        func exists(_ file: String) -> Bool { access("\(place)/\(file)", F_OK) == 0 }
        if let index, number("ifindex") != Int(index) {
            self.init(name, Facts(type: type ?? -1, driver: driver))
            return
        }
        let device = SmallFile.text(at: "\(place)/uevent").split(separator: "\n")
        self.init(
            name,
            Facts(
                type: type ?? number("type") ?? -1, driver: driver,
                device: device.first { $0.hasPrefix("DEVTYPE=") }.map { String($0.dropFirst(8)) } ?? "",
                hasWirelessFiles: exists("wireless") || exists("phy80211"), hasTunnelFiles: exists("tun_flags")))
    }
}

/// Reads files of the system.
///
/// Unlike `DiskFile.contents(of:upTo:isOwn:)`, it follows symbolic links, as `/etc/resolv.conf` often is one.
enum SmallFile {
    /// Returns the first 64 KiB of a file as text; empty when it cannot be read.
    static func text(at path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 64 << 10)
        var count = 0
        while count < text.count {
            let added = text.withUnsafeMutableBytes {
                read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            if added < 0, errno == EINTR { continue }
            guard added > 0 else { break }
            count += added
        }
        return String(decoding: text[..<count], as: UTF8.self)
    }
}
