// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Measuring

/// The memory that decoding a large document takes.
///
/// Each row has its own process, because memory left by other rows would count.
enum Memory: String, CaseIterable {
    case value
    case valueByFoundation = "value-foundation"
    case typed
    case typedByFoundation = "typed-foundation"

    private static let count = 26_000

    static func printTable() {
        print("| decoded in memory | bytes | growth, × body | values, × body | beyond them, × body | target | |")
        print("|---|--:|--:|--:|--:|--:|---|")
        for row in allCases where !runAgain(["--memory", row.rawValue]) { die("\(row.rawValue) did not end well") }
    }

    /// Decodes the document and prints a row of the table.
    func measure() throws {
        let text = Data(Texts.posts(Memory.count).utf8)
        switch self {
        case .value:
            // Use a new coder, so that its retained memory is freed with it.
            let residence = try MemoryUse { try JSON { _, _ in }.decode(JSONValue.self, from: text) }
            report(residence, "JSONValue, ours", text.count, growth: 3)
        case .valueByFoundation:
            let residence = try MemoryUse { try JSONDecoder().decode(JSONValue.self, from: text) }
            report(residence, "JSONValue, Foundation", text.count)
        case .typed:
            let residence = try MemoryUse { try JSON { _, _ in }.decode([Post].self, from: text) }
            report(residence, "objects, ours", text.count, beyond: 1.5)
        case .typedByFoundation:
            let residence = try MemoryUse { try JSONDecoder().decode([Post].self, from: text) }
            report(residence, "objects, Foundation", text.count)
        }
    }

    private func report(
        _ residence: MemoryUse, _ title: String, _ bytes: Int, growth: Double? = nil, beyond: Double? = nil
    ) {
        func share(_ difference: Int) -> Double { Double(difference) / Double(bytes) }
        let (grown, extra) = (share(residence.peak - residence.before), share(residence.peak - residence.after))
        var (target, verdict) = ("–", "")
        if let growth { (target, verdict) = ("growth ≤ \(growth)", grown <= growth ? "met" : "**not met**") }
        if let beyond { (target, verdict) = ("beyond ≤ \(beyond)", extra <= beyond ? "met" : "**not met**") }
        let values = share(residence.after - residence.before)
        let figures = [grown, values, extra].map { fixed($0, 2) }
        print("| \(title) | \(bytes) | \(figures.joined(separator: " | ")) | \(target) | \(verdict) |")
    }
}
