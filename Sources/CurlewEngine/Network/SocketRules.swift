// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// The rules for the interface and the local address of connections.
package struct SocketRules: Sendable {
    /// Interfaces that no connection may use.
    package enum Interfaces: Sendable, Hashable {
        /// The interface with this name; a name that ends in "*" covers all names with this prefix.
        case named(String)
        case kind(LinkState.Kind)

        func contains(_ name: String) -> Bool {
            switch self {
            case .named(let pattern):
                pattern.hasSuffix("*") ? name.hasPrefix(pattern.dropLast()) : name == pattern
            case .kind(let kind): LinkState.Kind(of: name) == kind
            }
        }
    }

    /// The reason why a socket must not connect to an address.
    package enum Refusal: Error, Sendable, Hashable {
        /// The route to the address uses a forbidden interface.
        case forbidden(interface: String)
        /// The system rejected the interface or the local address with this error.
        case unusable(String, errno: CInt)
        /// The local address and the address of the host belong to different families.
        case otherFamily(local: String)
    }

    /// The interface of all connections; nil for the system's choice.
    package var interface: String?
    /// The local IP address of all connections; nil for the system's choice.
    package var localAddress: String?
    package var forbidden: [Interfaces] = []

    package init() {}

    var isEmpty: Bool { interface == nil && localAddress == nil && forbidden.isEmpty }

    /// Applies the rules to a new socket before it connects to an address.
    func apply(to descriptor: CInt, for address: [UInt8]) throws(Refusal) {
        guard !address.isEmpty else { return }
        if let interface {
            let failure = curlew_bind_interface(descriptor, interface)
            if failure != 0 { throw .unusable("the interface \(interface)", errno: failure) }
        }
        if let localAddress {
            let local = SocketAddress(localAddress).bytes
            guard local.count == address.count else { throw .otherFamily(local: localAddress) }
            let failure = curlew_bind_address(descriptor, local, CInt(local.count))
            if failure != 0 { throw .unusable("the local address \(localAddress)", errno: failure) }
        }
        if forbidden.isEmpty { return }
        let name: String
        if let interface { name = interface } else { name = try routeInterface(to: address) }
        if forbidden.contains(where: { $0.contains(name) }) { throw .forbidden(interface: name) }
    }

    /// Asks the kernel for the route that connections under these rules use.
    ///
    /// - Parameters:
    ///   - address: 4 or 16 bytes in network order.
    ///   - link: The number of the interface for an address that is valid on one link; 0 otherwise.
    package func route(to address: [UInt8], on link: UInt32 = 0) -> KernelRoute.Answer {
        var link = link
        if let interface {
            let own = KernelRoute.number(ofLink: interface)
            if own == 0 || link != 0 && link != own { return .noRoute }
            link = own
        }
        let source = localAddress.map { SocketAddress($0).bytes }
        if let source, source.count != address.count { return .noRoute }
        let answer = KernelRoute.find(to: address, from: source, on: link)
        guard case .route(let route) = answer, forbidden.contains(where: { $0.contains(route.link) }) else {
            return answer
        }
        return .noRoute
    }

    /// Returns the interface over which the kernel would send to an address; empty without a route.
    private func routeInterface(to bytes: [UInt8]) throws(Refusal) -> String {
        switch KernelRoute.find(to: bytes, from: localAddress.map { SocketAddress($0).bytes }) {
        case .route(let route): return route.link
        case .noRoute: return ""
        // An unknown route may be a forbidden one.
        case .failed(let errno): throw .unusable("a route that the kernel does not tell", errno: errno)
        }
    }
}
