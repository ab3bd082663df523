// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// In which order one connection tries the addresses of its host.
///
/// libcurl tries them as it was told, the two families by turns (RFC 8305), and tells of each before it connects: what is
/// first there is replaced by what is first here, and so on, each within its family. Its own cache knows nothing of it.
struct AddressOrder {
    private var places: [[UInt8]: [UInt8]] = [:]

    /// - Parameters:
    ///   - addresses: As they were found.
    ///   - turn: How many connections there were before.
    /// - Returns: Nil when the order is that in which they were found.
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

    /// The address that is tried where libcurl would try this one.
    subscript(_ address: [UInt8]) -> [UInt8]? { places[address] }

    /// Makes libcurl connect to another address than it is about to.
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
