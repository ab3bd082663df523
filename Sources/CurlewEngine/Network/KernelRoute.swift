// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The route on which the kernel would send packets to an address.
package struct KernelRoute: Sendable, Hashable {
    /// The kernel's answer to a request for a route.
    package enum Answer: Sendable, Hashable {
        case route(KernelRoute)
        case noRoute
        /// The request failed.
        case failed(errno: CInt)
    }

    /// The name of the interface.
    package var link: String
    /// Whether the address belongs to this machine.
    package var isLocal: Bool
    /// The local address that the kernel would use, in network order; empty if the kernel names no address.
    package var source: [UInt8]

    package init(link: String, isLocal: Bool = false, source: [UInt8] = []) {
        self.link = link
        self.isLocal = isLocal
        self.source = source
    }

    /// Asks the kernel for the route to an address, with its routing rules and tables; no packet is sent.
    ///
    /// - Parameters:
    ///   - address: 4 or 16 bytes in network order.
    ///   - source: The local address, of the same family; nil for the kernel's choice.
    ///   - link: The number of the interface for a link-local address; 0 otherwise.
    package static func find(to address: [UInt8], from source: [UInt8]? = nil, on link: UInt32 = 0) -> Answer {
        var route = curlew_route()
        let count = CInt(address.count)
        let failure =
            source.map { curlew_route_find(address, $0, count, link, &route) }
            ?? curlew_route_find(address, nil, count, link, &route)
        if failure != 0 { return .failed(errno: failure) }
        guard route.index != 0 else { return .noRoute }
        let bytes = withUnsafeBytes(of: route.source) { Array($0.prefix(Int(route.source_count))) }
        // An answer for IPv4 leaves out the local address if it is the requested one.
        return .route(
            KernelRoute(
                link: text(route.name), isLocal: route.is_local, source: bytes.isEmpty ? source ?? [] : bytes))
    }

    /// Returns the number of an interface; 0 when it does not exist.
    ///
    /// - Parameter name: Its name, or its number in decimal digits, as in the answers of some resolvers (RFC 4007
    ///   §11.2).
    package static func number(ofLink name: String) -> UInt32 {
        let number = curlew_link_number(name)
        return number == 0 ? UInt32(name) ?? 0 : number
    }
}

/// Returns the text of a character array of C that ends at its first zero.
func text<Characters>(_ characters: Characters) -> String {
    withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}
