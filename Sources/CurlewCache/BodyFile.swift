// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// The layout of a file with a stored body: the body, then a trailer that makes the file readable without the index.
///
/// ```text
/// body | entry as JSON | digests of the blocks of the body | footer
/// footer: magic (8) | id (8) | size of the body (8) | size of the entry (4) | size of the digests (4) | digest (16)
/// ```
///
/// Numbers are little-endian. The digest of the footer covers the entry, the digests and the rest of the footer.
struct BodyFile {
    /// The size of the footer in bytes.
    static let footerSize = 48
    /// The maximum size of an entry and of the digests, which bounds the memory for a damaged file.
    private static let maximumPart = 16 << 20
    private static let magic = Array("CURLEWC1".utf8)

    let id: UInt64
    let bodySize: Int64
    let entrySize: Int
    let digestsSize: Int
    private let digest: [UInt8]

    /// Returns the trailer of a body.
    static func trailer(id: UInt64, _ entry: [UInt8], bodySize: Int64, digests: [UInt8]) -> [UInt8]? {
        let sizes = bytes(of: UInt32(clamping: entry.count)) + bytes(of: UInt32(clamping: digests.count))
        let footer = magic + bytes(of: id) + bytes(of: UInt64(bodySize)) + sizes
        let covered = entry + digests + footer
        guard let digest = BlockDigests.digests(of: covered), entry.count <= maximumPart, digests.count <= maximumPart
        else {
            return nil
        }
        return covered + self.digest(of: digest)
    }

    /// Returns 16 bytes for the digests of any number of blocks.
    private static func digest(of digests: [UInt8]) -> [UInt8] {
        digests.count == BlockDigests.size
            ? digests : BlockDigests.digests(of: digests).map { Array($0.prefix(BlockDigests.size)) } ?? []
    }

    private static func bytes<Number: FixedWidthInteger>(of number: Number) -> [UInt8] {
        (0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads a footer; nil for an invalid one.
    ///
    /// - Parameter fileSize: The size of the file, with which the sizes in the footer must agree.
    init?(footer: [UInt8], fileSize: Int64) {
        guard footer.count == Self.footerSize, footer.starts(with: Self.magic) else { return nil }
        guard let bodySize = Int64(exactly: Self.number(footer[16..<24])) else { return nil }
        id = Self.number(footer[8..<16])
        self.bodySize = bodySize
        entrySize = Int(Self.number(footer[24..<28]))
        digestsSize = Int(Self.number(footer[28..<32]))
        digest = Array(footer[32...])
        let blocks = (bodySize + Int64(BlockDigests.blockSize) - 1) / Int64(BlockDigests.blockSize)
        guard entrySize <= Self.maximumPart, digestsSize <= Self.maximumPart, bodySize <= fileSize,
            Int64(digestsSize) == blocks * Int64(BlockDigests.size),
            bodySize + Int64(entrySize + digestsSize + Self.footerSize) == fileSize
        else { return nil }
    }

    /// The size of the trailer in bytes.
    var trailerSize: Int { entrySize + digestsSize + Self.footerSize }

    /// Returns the entry and the digests of a trailer; nil if it is damaged.
    func parts(of trailer: [UInt8]) -> (entry: [UInt8], digests: [UInt8])? {
        guard trailer.count == trailerSize, let actual = BlockDigests.digests(of: trailer.dropLast(BlockDigests.size)),
            Self.digest(of: actual) == digest
        else { return nil }
        return (Array(trailer[..<entrySize]), Array(trailer[entrySize..<entrySize + digestsSize]))
    }

    /// Returns whether a block of the body has its digest.
    static func matches(_ block: some Collection<UInt8>, _ digests: [UInt8], at index: Int) -> Bool {
        let start = index * BlockDigests.size
        guard start + BlockDigests.size <= digests.count, let actual = BlockDigests.digests(of: block) else {
            return false
        }
        return actual.elementsEqual(digests[start..<start + BlockDigests.size])
    }
}
