// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A service binding (RFC 9460 §2): how to reach a service under another name or port, and what it supports.
struct ServiceBinding: Sendable, Hashable {
    /// 0 in alias mode; otherwise lower numbers are preferred.
    var priority: UInt16
    /// The host that provides the service; in alias mode the name with the service bindings to use instead, or "." if
    /// there is no service (§2.5.1).
    var target: String
    /// The identifiers of protocols (ALPN) besides the default, without those that are not visible ASCII.
    var protocols: [String] = []
    /// Whether the service also supports HTTP/1.1, the default protocol (§9).
    var allowsDefaultProtocol = true
    /// The port, if it is not the one of the URL.
    var port: UInt16?
    /// IPv4 and IPv6 addresses of the target, each of four or sixteen bytes.
    var addresses: [[UInt8]] = []
    /// Whether the record has keys for Encrypted Client Hello; Curlew does not read them.
    var hasEncryptedHello = false
    /// Whether Curlew understands each mandatory key (§8), the keys agree with each other, and the target is a host.
    var isUsable = true

    var isAlias: Bool { priority == 0 }
}

// MARK: Reading

extension ServiceBinding {
    /// Reads the data of an HTTPS record.
    ///
    /// - Parameter owner: The name of the record; in service mode, the target "." means this name.
    init(_ data: DNSReader, owner: String) throws(DNSMessage.Flaw) {
        var data = data
        priority = try data.number()
        // The target is not compressed (§2.2), so no pointer is valid.
        let name = try data.name(pointersBelow: 0)
        target = name ?? "."
        if name == ".", priority > 0 { target = owner }
        // The target becomes the host of a connection, so a name with four labels such as "127.0.0.1" is not usable.
        let isHost = HostName.key(target) == target && !HostName.isAddress(target)
        isUsable = name != nil && (isHost || isAlias && target == ".")
        // Parameters in alias mode are ignored (§2.4.2).
        if priority > 0 { try readParameters(data) }
    }

    private mutating func readParameters(_ data: DNSReader) throws(DNSMessage.Flaw) {
        var data = data
        var last = -1
        var mandatory: Set<UInt16> = []
        var hasProtocols = false
        while !data.isAtEnd {
            let key = try data.number()
            guard Int(key) > last else { throw .malformed }
            last = Int(key)
            var value = try data.part(Int(try data.number()))
            switch key {
            case 0:
                var previous: UInt16 = 0
                repeat {
                    let listed = try value.number()
                    // The order is strict, so this also refuses duplicates and the key "mandatory" itself.
                    guard listed > previous else { throw .malformed }
                    previous = listed
                    mandatory.insert(listed)
                } while !value.isAtEnd
            case 1:
                hasProtocols = true
                repeat {
                    let identifier = try value.bytes(Int(try value.number(of: 1)))
                    guard !identifier.isEmpty else { throw .malformed }
                    if identifier.allSatisfy({ (0x21...0x7E).contains($0) }) {
                        protocols.append(String(decoding: identifier, as: UTF8.self))
                    }
                } while !value.isAtEnd
            case 2: allowsDefaultProtocol = false
            case 3: port = try value.number()
            case 4, 6:
                repeat { addresses.append(Array(try value.bytes(key == 4 ? 4 : 16))) } while !value.isAtEnd
            case 5:
                hasEncryptedHello = !value.isAtEnd
                continue
            default: continue
            }
            guard value.isAtEnd else { throw .malformed }
            mandatory.remove(key)
        }
        // The remaining mandatory keys are missing, or Curlew does not understand them.
        isUsable = isUsable && mandatory.isEmpty && (allowsDefaultProtocol || hasProtocols) && port != 0
    }
}
