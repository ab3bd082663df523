// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the size of an SVG file from the first tag (SVG 2, §7.2 and §8.1; CSS Images 3, §4.3).
///
/// A percentage counts as missing, because a file has no containing block. Missing sides come from the
/// viewBox, and without it from the default of browsers, 300 × 150. The property `style` has no influence.
struct SVGHeaderReader: HeaderReader {
    static let maximumLength = 65_536
    private static let defaultSize = (width: 300.0, height: 150.0)
    /// CSS pixels for each unit (CSS Values 3, §5.2), and for "em" with the default size of a font, 16 px.
    private static let units: [String: Double] = [
        "": 1, "px": 1, "pt": 96 / 72.0, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
        "em": 16, "rem": 16, "ex": 8, "ch": 8,
    ]

    let format = ImageFormat.svg
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 1)
    private var start = SVGStart()
    private var position = 0

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        start.push(bytes[0])
        position += 1
        need = HeaderNeed(position, 1)
        if start.isDone {
            need = nil
            header = try sized()
        } else if start.hasEnded {
            throw malformed("the first tag is not well-formed XML.")
        } else if position == Self.maximumLength {
            throw ImageError(
                .tooLarge, format: .svg, "The first tag of the SVG file is not complete within \(position) bytes.")
        }
    }

    private func sized() throws(ImageError) -> ImageHeader {
        let width = start.attributes["width"].flatMap(Self.pixels)
        let height = start.attributes["height"].flatMap(Self.pixels)
        let box = start.attributes["viewBox"].flatMap(Self.size(ofViewBox:))
        let size: (Double, Double) =
            switch (width, height, box) {
            case (let width?, let height?, _): (width, height)
            case (let width?, nil, let box?): (width, width * box.height / box.width)
            case (nil, let height?, let box?): (height * box.width / box.height, height)
            case (nil, nil, let box?): box
            default: (width ?? Self.defaultSize.width, height ?? Self.defaultSize.height)
            }
        var header = try ImageHeader(.svg, width: Self.roundedUp(size.0), height: Self.roundedUp(size.1))
        header.hasAlpha = true
        return header
    }

    /// Returns the length in CSS pixels; nil for a percentage, a negative or an invalid length, which count as missing.
    static func pixels(_ text: String) -> Double? {
        let text = text.utf8.filter { !$0.isXMLSpace }
        guard let number = number(text), let factor = units[unit(text[number.count...])], number.value >= 0 else {
            return nil
        }
        return number.value * factor
    }

    private static func unit(_ text: ArraySlice<UInt8>) -> String { String(decoding: text, as: UTF8.self).lowercased() }

    /// Returns the width and height of a viewBox: the last two of four numbers; nil unless both are positive.
    static func size(ofViewBox text: String) -> (width: Double, height: Double)? {
        let parts = text.utf8.split { $0.isXMLSpace || $0 == UInt8(ascii: ",") }.map { Array($0) }
        let numbers = parts.compactMap { part in number(part).flatMap { $0.count == part.count ? $0.value : nil } }
        guard parts.count == 4, numbers.count == 4, numbers[2] > 0, numbers[3] > 0 else { return nil }
        return (numbers[2], numbers[3])
    }

    /// Reads a number at the start of a text (CSS Values 3, §4.2), and returns its value and the count of its bytes.
    private static func number(_ text: [UInt8]) -> (value: Double, count: Int)? {
        var end = 0
        func skipDigits() -> Int {
            let start = end
            while end < text.count, 0x30...0x39 ~= text[end] { end += 1 }
            return end - start
        }
        if let sign = text.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { end = 1 }
        var digits = skipDigits()
        if end < text.count, text[end] == UInt8(ascii: ".") {
            end += 1
            digits += skipDigits()
        }
        guard digits > 0 else { return nil }
        // "1em" has no exponent, "1e3" has one.
        let mantissa = end
        if end < text.count, text[end] | 0x20 == UInt8(ascii: "e") {
            end += 1
            if end < text.count, text[end] == UInt8(ascii: "+") || text[end] == UInt8(ascii: "-") { end += 1 }
            if skipDigits() == 0 { end = mantissa }
        }
        guard let value = Double(String(decoding: text[..<end], as: UTF8.self)), value.isFinite else { return nil }
        return (value, end)
    }

    /// Rounds up, but not for an error of the conversion of units.
    private static func roundedUp(_ length: Double) -> Int {
        let limit = Double(Int32.max) + 1
        let fraction = length - length.rounded(.down)
        return Int(min(limit, fraction < 1e-6 ? length.rounded(.down) : length.rounded(.up)))
    }
}
