// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The order in which one connection attempts the addresses of its host.
///
/// libcurl attempts the addresses in the order of the look-up, alternating between the two families (RFC 8305), and
/// calls back before it connects to each of them. Then the first address of a family in libcurl's order is replaced by
/// the first of this order, the second by the second, and so on. libcurl's own cache keeps the original order.
struct AddressOrder {
    private var places: [[UInt8]: [UInt8]] = [:]

    /// - Parameters:
    ///   - addresses: The addresses in the order of the look-up.
    ///   - turn: The number of earlier connections to the origin.
    /// - Returns: Nil if the order is that of the look-up.
    init?(_ addresses: [String], _ order: EngineConfiguration.AddressOrder, turn: Int) {
        guard order != .asResolved, addresses.count > 1 else { return nil }
        let all = addresses.map(AddressOrder.bytes)
        for length in [4, 16] {
            let family = all.filter { $0.count == length }
            guard family.count > 1 else { continue }
            let first = turn % family.count
            let wanted = order == .shuffled ? family.shuffled() : Array(family[first...] + family[..<first])
            for (place, address) in zip(family, wanted) { places[place] = address }
        }
        if places.isEmpty { return nil }
    }

    /// The address to use where libcurl would use `address`.
    subscript(_ address: [UInt8]) -> [UInt8]? { places[address] }

    /// Replaces the address that libcurl is about to connect to.
    func apply(to address: UnsafeMutablePointer<curl_sockaddr>) {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(curlew_address_bytes(address, &bytes))
        if let other = places[Array(bytes.prefix(count))] { curlew_address_replace(address, other) }
    }

    static func bytes(of text: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = Int(curlew_address_parse(text, &bytes))
        return Array(bytes.prefix(count))
    }
}
