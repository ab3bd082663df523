// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ImageFormat {
    /// The number of first bytes after which every signature is decided.
    ///
    /// Binary formats need 4 to 16 bytes, AVIF up to 1024. SVG and XBM are text, in which comments may come first.
    public static let signatureLength = ImageSignature.maximumLength

    /// Finds the format of a file by its first bytes.
    ///
    /// The patterns are those of the WHATWG's MIME Sniffing Standard (§6.1, "Matching an image type pattern"), and
    /// those of TIFF, AVIF (a brand `avif` or `avis` in its first box), SVG (XML text whose first element is `svg`)
    /// and XBM (`#define NAME_width N`). A declared type of the response has no influence.
    ///
    /// ```swift
    /// let format = ImageFormat(signature: data.prefix(ImageFormat.signatureLength))
    /// ```
    ///
    /// - Parameter bytes: The file from its first byte. The initializer reads at most `signatureLength` of them. The
    ///   result is nil for other formats, and if the bytes end before the signature.
    public init?(signature bytes: some Collection<UInt8>) {
        var signature = ImageSignature()
        for byte in bytes {
            do throws(ImageError) {
                guard let format = try signature.push(byte) else { continue }
                self = format
                return
            } catch {
                return nil
            }
        }
        return nil
    }
}

/// Compares the first bytes of a file with all signatures, byte by byte.
struct ImageSignature: Sendable {
    static let maximumLength = 4096

    /// Patterns of fixed bytes; nil matches any byte.
    private static let patterns: [(ImageFormat, [UInt8?])] = [
        (.ico, [0x00, 0x00, 0x01, 0x00]),
        (.ico, [0x00, 0x00, 0x02, 0x00]),
        (.bmp, ascii("BM")),
        (.gif, ascii("GIF87a")),
        (.gif, ascii("GIF89a")),
        (.webp, ascii("RIFF") + [nil, nil, nil, nil] + ascii("WEBPVP")),
        (.png, [0x89] + ascii("PNG\r\n") + [0x1A, 0x0A]),
        (.jpeg, [0xFF, 0xD8, 0xFF]),
        (.tiff, ascii("II*\0")),
        (.tiff, ascii("MM\0*")),
        // BigTIFF, which the reader refuses with advice.
        (.tiff, ascii("II+\0")),
        (.tiff, ascii("MM\0+")),
    ]

    private static func ascii(_ text: String) -> [UInt8?] { text.utf8.map { $0 } }

    private var count = 0
    private var candidates = Array(Self.patterns.indices)
    private var brands: BrandList? = BrandList()
    private var svg: SVGStart? = SVGStart()
    private var xbm: XBMText? = XBMText()

    /// Reads the next byte.
    ///
    /// - Returns: The format; nil while it is undecided.
    /// - Throws: `.unknownFormat` if no signature matches.
    mutating func push(_ byte: UInt8) throws(ImageError) -> ImageFormat? {
        candidates.removeAll { index in
            guard let expected = Self.patterns[index].1[count] else { return false }
            return expected != byte
        }
        count += 1
        if let found = candidates.first(where: { Self.patterns[$0].1.count == count }) { return Self.patterns[found].0 }
        if brands?.push(byte) == true { return .avif }
        if brands?.hasEnded == true { brands = nil }
        svg?.push(byte)
        if svg?.isSVG == true { return .svg }
        if svg?.hasEnded == true { svg = nil }
        xbm?.push(byte)
        if xbm?.width != nil { return .xbm }
        if xbm?.hasEnded == true { xbm = nil }
        guard !candidates.isEmpty || brands != nil || svg != nil || xbm != nil, count < Self.maximumLength else {
            throw ImageError(
                .unknownFormat, "The first \(count) bytes are not those of an image format that Curlew knows.",
                hint: "Print the text: a server may send an error page with an image type.")
        }
        return nil
    }
}

/// The box `ftyp` at the start of an ISO base media file, with its brands (ISO/IEC 14496-12, §4.3; AVIF, §6).
private struct BrandList: Sendable {
    private static let maximumSize = 1024

    private(set) var hasEnded = false
    private var count = 0
    private var size = 0
    private var word: [UInt8] = []

    /// Reads the next byte; returns true after a brand of AVIF.
    mutating func push(_ byte: UInt8) -> Bool {
        count += 1
        word.append(byte)
        guard word.count == 4 else { return false }
        defer { word = [] }
        switch count {
        case 4:
            size = word.number(at: 0, bytes: 4)
            hasEnded = !(12...Self.maximumSize ~= size)
        case 8: hasEnded = !word.has("ftyp")
        // The version, which is no brand.
        case 16: break
        default:
            if word.has("avif") || word.has("avis") { return true }
        }
        if count > 4, count + 4 > size { hasEnded = true }
        return false
    }
}
