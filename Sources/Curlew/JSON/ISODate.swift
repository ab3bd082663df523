// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Dates as text (ISO 8601, RFC 3339); this type parses the common form, and Foundation parses the others.
enum ISODate {
    /// Parses a date such as `2026-11-24T18:30:00Z`, with an optional fraction, in UTC or with an offset.
    ///
    /// - Returns: The date; nil if the text is invalid.
    static func date(_ text: String) -> Date? {
        var text = text
        if let date = text.withUTF8({ common($0.span) }) { return date }
        return foundation(text)
    }

    /// Parses forms that only Foundation supports, and refuses text after the zone.
    private static func foundation(_ text: String) -> Date? {
        guard let last = text.utf8.last,
            ByteSet.digits.contains(last) || last | 0x20 == UInt8(ascii: "z") || last == 0x54 || last == 0x43
                || last == 0x63 || last == 0x74
        else { return nil }
        return (try? Date.ISO8601FormatStyle().parse(text))
            ?? (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
    }

    /// Parses a Gregorian date in the form of RFC 3339 §5.6 with a capital T and Z; returns nil for other forms.
    private static func common(_ text: Span<UInt8>) -> Date? {
        func number(_ start: Int, _ count: Int) -> Int? {
            var value = 0
            for place in start..<start + count {
                let digit = text[place] &- 0x30
                if digit > 9 { return nil }
                value = value * 10 + Int(digit)
            }
            return value
        }
        func isAt(_ place: Int, _ character: Unicode.Scalar) -> Bool { text[place] == UInt8(ascii: character) }
        guard text.count >= 20, text.count <= 40, isAt(4, "-"), isAt(7, "-"), isAt(10, "T"), isAt(13, ":"),
            isAt(16, ":"),
            let year = number(0, 4), year > 1582, let month = number(5, 2), 1...12 ~= month,
            let day = number(8, 2), 1...28 ~= day || day > 0 && day <= days(in: month, of: year),
            let hour = number(11, 2), hour < 24, let minute = number(14, 2), minute < 60,
            let second = number(17, 2), second < 60
        else { return nil }
        var place = 19
        var fraction = 0.0
        if isAt(place, ".") {
            let start = place + 1
            place = start
            while place < text.count, text[place] &- 0x30 < 10 { place += 1 }
            guard 1...9 ~= place - start, place < text.count, let digits = number(start, place - start) else {
                return nil
            }
            fraction = Double(digits) / powers[place - start]
        }
        var offset = 0
        if isAt(place, "Z") {
            guard text.count == place + 1 else { return nil }
        } else {
            guard text.count == place + 6, isAt(place, "+") || isAt(place, "-"), isAt(place + 3, ":"),
                let hours = number(place + 1, 2), hours < 24, let minutes = number(place + 4, 2), minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (isAt(place, "-") ? -60 : 60)
        }
        let seconds = ((dayNumber(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset
        // `Date` stores seconds since 2001, which are more precise than seconds since 1970.
        return Date(timeIntervalSinceReferenceDate: Double(seconds - 978_307_200) + fraction)
    }

    private static let powers: [Double] = (0...9).map { (0..<$0).reduce(1.0) { value, _ in value * 10 } }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns the days since 1970-01-01; counts years from March, so that the leap day is the last day of a year.
    static func dayNumber(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }

    /// Returns a date in whole seconds, rounded down, in the form of Foundation's coders.
    ///
    /// - Parameter withMilliseconds: Whether the text contains milliseconds that are not zero.
    static func text(_ date: Date, withMilliseconds: Bool = false) -> String {
        let time = date.timeIntervalSince1970
        // The date is outside the Gregorian years with four digits.
        guard time >= firstCommon, time < lastCommon else { return date.formatted(.iso8601) }
        // A fraction of less than half a microsecond is a rounding error of `Double`.
        let thousandths = Int((time * 1000 + 0.0005).rounded(.down))
        let seconds = withMilliseconds ? floor(thousandths, 1000) : Int(time.rounded(.down))
        let milliseconds = withMilliseconds ? thousandths - seconds * 1000 : 0
        let day = floor(seconds, 86400)
        let (year, month, dayOfMonth) = civil(day)
        let second = seconds - day * 86400
        var text: [UInt8] = []
        text.reserveCapacity(24)
        func put(_ value: Int, _ digits: Int, _ behind: Unicode.Scalar) {
            for place in stride(from: digits - 1, through: 0, by: -1) {
                let power = [1, 10, 100, 1000][place]
                text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / power % 10))
            }
            text.append(UInt8(ascii: behind))
        }
        put(year, 4, "-")
        put(month, 2, "-")
        put(dayOfMonth, 2, "T")
        put(second / 3600, 2, ":")
        put(second / 60 % 60, 2, ":")
        put(second % 60, 2, milliseconds > 0 ? "." : "Z")
        if milliseconds > 0 { put(milliseconds, 3, "Z") }
        return String(decoding: text, as: UTF8.self)
    }

    private static let firstCommon = Double(dayNumber(1583, 1, 1) * 86400)
    private static let lastCommon = Double(dayNumber(10_000, 1, 1) * 86400)

    private static func floor(_ value: Int, _ divisor: Int) -> Int {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }

    /// Returns the date for a number of days since 1970-01-01; counts years from March.
    private static func civil(_ day: Int) -> (year: Int, month: Int, day: Int) {
        let days = day + 719_468
        let era = floor(days, 146_097)
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}
