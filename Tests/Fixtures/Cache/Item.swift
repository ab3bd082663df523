// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

/// A stored response whose body is a function of its number, version and size; the tests have the same function.
struct Item: CustomStringConvertible {
    /// The field whose value counts the updates.
    static let update: HeaderName = "X-Update"

    let number: Int
    let version: Int
    let size: Int
    private(set) var updates = "0"

    /// Creates an item from at least three numbers.
    init(_ numbers: [Int]) { (number, version, size) = (numbers[0], numbers[1], numbers[2]) }

    /// Reads the fields of an entry; nil if they do not agree with its key or its size.
    init?(_ entry: HTTPCache.Entry) {
        let numbers = (entry.fields["X-Item"] ?? "").split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 3, entry.key == Self.key(numbers[0]), entry.size == numbers[2] else { return nil }
        self.init(numbers)
        updates = entry.fields[Self.update] ?? ""
    }

    static func key(_ number: Int) -> String { "https://example.com/\(number)" }

    var body: PatternBody {
        PatternBody(seed: UInt64(number) << 48 | UInt64(version) << 24 | UInt64(size), length: size)
    }

    /// A new entry with size 0.
    var entry: HTTPCache.Entry {
        let (url, now) = (Self.key(number), Date())
        return HTTPCache.Entry(
            key: url, url: url, head: ResponseHead(status: .ok),
            fields: ["X-Item": "\(number) \(version) \(size)", "X-Update": "0"], requestedAt: now, receivedAt: now)
    }

    /// The number, the version and the number of updates, such as "3.1.0".
    var description: String { "\(number).\(version).\(updates)" }

    /// Returns the descriptions in the order of the numbers and versions.
    static func list(_ items: [Item]) -> String {
        items.sorted { ($0.number, $0.version) < ($1.number, $1.version) }.map(\.description).joined(separator: " ")
    }
}

/// Pseudo-random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014).
struct Chance: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
