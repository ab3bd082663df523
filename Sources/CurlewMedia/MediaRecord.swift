// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// The record of a stored file: which of its bytes are on the disk, and what the server said about it.
///
/// It has neither the URL nor a field of the request. The file of a record has sixteen hexadecimal digits of the
/// SHA-256 of the rest, a space, and a JSON object.
struct MediaRecord: Sendable, Hashable, Codable {
    /// The end of the name of a record.
    static let suffix = ".media"
    /// The end of the name of a file with bytes.
    static let dataSuffix = ".bytes"
    /// The maximum size of a record in bytes.
    static let maximumSize = 1 << 20

    /// The version of the format.
    var format = 1
    /// The key of the file.
    var key: String
    /// The name of the file with the bytes.
    var name: String
    var facts: MediaFacts
    var mode: FetchPlan.Mode
    /// The first positions of the stored ranges and the positions behind them, in ascending order.
    var bounds: [Int64]
    /// When the file was last used, in microseconds since 1970.
    var usedAt: Int64
    /// When the server last confirmed the file, in seconds since 1970.
    var confirmedAt: Int64

    /// Returns the stored ranges; nil if they are invalid.
    var intervals: ByteIntervals? {
        guard bounds.count.isMultiple(of: 2) else { return nil }
        var ranges: [Range<Int64>] = []
        for index in stride(from: 0, to: bounds.count, by: 2) {
            guard bounds[index] < bounds[index + 1] else { return nil }
            ranges.append(bounds[index]..<bounds[index + 1])
        }
        guard let intervals = ByteIntervals(ranges) else { return nil }
        if let length = facts.length, let last = ranges.last, last.upperBound > length { return nil }
        return intervals
    }

    /// Whether the bytes can be used after the end of the process: all of them are there, or the rest can be requested.
    var isUsable: Bool {
        guard let intervals else { return false }
        if let length = facts.length, intervals.count == length { return true }
        return mode == .ranged && facts.validator != nil && !intervals.isEmpty
    }

    /// Returns the contents of the record's file.
    func encoded() -> [UInt8]? {
        guard let json = try? JSONEncoder().encode(self),
            let digest = MessageDigest.digest(.sha256, of: json)
        else { return nil }
        return Array((digest.prefix(8).hexadecimal + " ").utf8) + Array(json)
    }

    /// Reads the contents of a record's file; nil if they are damaged or do not belong to the key.
    init?(_ bytes: [UInt8], of key: MediaKey) {
        guard bytes.count > 17, bytes[16] == UInt8(ascii: " ") else { return nil }
        let json = Data(bytes[17...])
        guard let digest = MessageDigest.digest(.sha256, of: json),
            digest.prefix(8).hexadecimal.utf8.elementsEqual(bytes[..<16]),
            let record = try? JSONDecoder().decode(MediaRecord.self, from: json), record.format == 1,
            record.key == key.text, Self.isDataName(record.name, of: key), record.isUsable
        else { return nil }
        self = record
    }

    init(
        key: MediaKey, name: String, facts: MediaFacts, mode: FetchPlan.Mode, intervals: ByteIntervals, usedAt: Int64,
        confirmedAt: Int64
    ) {
        (self.key, self.name, self.facts, self.mode) = (key.text, name, facts, mode)
        bounds = intervals.ranges.flatMap { [$0.lowerBound, $0.upperBound] }
        (self.usedAt, self.confirmedAt) = (usedAt, confirmedAt)
    }

    /// Returns a new name for the bytes of a key.
    static func dataName(of key: MediaKey) -> String {
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        return "\(key.text)-\(String(repeating: "0", count: 16 - digits.count))\(digits)\(dataSuffix)"
    }

    static func isDataName(_ name: String, of key: MediaKey) -> Bool {
        name.utf8.count == 64 + 1 + 16 + dataSuffix.utf8.count && name.hasPrefix(key.text + "-")
            && name.hasSuffix(dataSuffix) && !name.utf8.contains(UInt8(ascii: "/"))
    }

    /// Returns whether a media cache may have made a file with a name; such leftovers are removed.
    static func isOwnName(_ name: String) -> Bool {
        guard MediaKey(String(name.prefix(64))) != nil else { return false }
        let rest = name.dropFirst(64)
        return rest == suffix || rest == suffix + ".new" || rest.hasSuffix(dataSuffix)
    }
}
