// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The servers that requests reach without a proxy, such as the list in `no_proxy`.
///
/// Commas or blanks separate the entries. Letter case has no effect.
///
/// - `*` covers every server.
/// - `example.com`, `.example.com` and `*.example.com` each cover the host and all its subdomains.
/// - `192.0.2.7`, `::1` and `[::1]` cover one address.
/// - `10.0.0.0/8` and `2001:db8::/32` cover the addresses of a network. Host names are not looked up.
/// - A port at the end, as in `example.com:8080` or `[::1]:80`, restricts the entry to this port.
///
/// These are curl's rules. In addition, Curlew supports ports, the prefix `*.`, and `*` together with other entries.
/// Any other entry is invalid and covers no server.
struct ProxyExceptions: Sendable, Hashable {
    private enum Hosts: Hashable {
        case all
        /// A domain without dots at its ends.
        case domain(String)
        /// The bytes of an address, and the number of bits that are compared.
        case network([UInt8], bits: Int)
    }

    private struct Entry: Hashable {
        let text: String
        let hosts: Hosts
        let port: UInt16?
    }

    private let entries: [Entry]
    /// The list, unchanged.
    let text: String

    init(_ text: String) {
        self.text = text
        let separators: Set<Character> = [",", " ", "\t", "\n", "\r", "\r\n"]
        entries = text.split(whereSeparator: separators.contains).compactMap(Self.entry)
    }

    /// Returns the text of the first entry that covers a server; nil if no entry covers it.
    ///
    /// - Parameter host: A host name of A-labels in lower case, or an IP address.
    func entry(for host: String, port: UInt16) -> String? {
        if entries.isEmpty { return nil }
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let address = HostName.bytes(ofAddress: name)
        let found = entries.first { entry in
            (entry.port ?? port) == port && Self.covers(entry.hosts, name, address)
        }
        return found?.text
    }

    private static func covers(_ hosts: Hosts, _ name: String, _ address: [UInt8]?) -> Bool {
        switch hosts {
        case .all: return true
        case .domain(let domain):
            return address == nil && (name == domain || name.hasSuffix(".\(domain)"))
        case .network(let network, let bits):
            guard let address, address.count == network.count else { return false }
            let (whole, rest) = (bits / 8, bits % 8)
            guard address[..<whole] == network[..<whole] else { return false }
            return rest == 0 || (address[whole] ^ network[whole]) >> (8 - rest) == 0
        }
    }

    private static func entry(_ written: Substring) -> Entry? {
        var rest = written
        var port: UInt16?
        // A port follows "]:", or the only colon of the entry.
        if rest.hasPrefix("[") || rest.filter({ $0 == ":" }).count == 1 {
            if let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
                let digits = rest[rest.index(after: colon)...]
                guard digits.utf8.allSatisfy(ByteSet.digits.contains), let number = UInt16(digits), number > 0 else {
                    return nil
                }
                port = number
                rest = rest[..<colon]
            }
        }
        return hosts(rest).map { Entry(text: String(written), hosts: $0, port: port) }
    }

    private static func hosts(_ written: Substring) -> Hosts? {
        if written == "*" { return .all }
        if let network = network(written) { return network }
        var domain = written.hasPrefix("*.") ? written.dropFirst() : written
        while domain.hasPrefix(".") { domain.removeFirst() }
        guard let name = HostName.key(domain), HostName.bytes(ofAddress: name) == nil else { return nil }
        return .domain(name)
    }

    /// Parses an address or a network; returns nil if the text is neither.
    private static func network(_ written: Substring) -> Hosts? {
        var text = written
        var bits: Int?
        if let slash = text.firstIndex(of: "/") {
            let digits = text[text.index(after: slash)...]
            guard digits.utf8.allSatisfy(ByteSet.digits.contains), let number = Int(digits) else { return nil }
            bits = number
            text = text[..<slash]
        }
        if text.hasPrefix("["), text.hasSuffix("]") {
            text = text.dropFirst().dropLast()
            guard text.contains(":") else { return nil }
        }
        guard let bytes = HostName.bytes(ofAddress: String(text)), bits ?? 0 <= bytes.count * 8 else { return nil }
        return .network(bytes, bits: bits ?? bytes.count * 8)
    }
}
