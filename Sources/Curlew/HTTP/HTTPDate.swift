// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A date of an HTTP field (RFC 9110 §5.6.7), in whole seconds.
///
/// A date is written as `Sun, 06 Nov 1994 08:49:37 GMT`. The parser also accepts the two obsolete forms, as a recipient
/// must.
package struct HTTPDate: Hashable, Sendable {
    /// Seconds since 1970, without leap seconds.
    package let seconds: Int64

    package init(seconds: Int64) { self.seconds = seconds }

    package init(_ date: Date) { seconds = Int64(date.timeIntervalSince1970.rounded(.down)) }

    /// Parses one of the three forms; nil for another text and for a day that the calendar does not have.
    ///
    /// - Parameter now: The current time, which decides the century of a two-digit year (RFC 9110 §5.6.7): a date that
    ///   would be more than fifty years in the future is in the past.
    package init?(_ text: some StringProtocol, now: HTTPDate = HTTPDate(Date())) {
        let words = text.split(separator: " ")
        switch words.count {
        case 6 where words[0].hasSuffix(","): self.init(fixed: words)
        case 4 where words[0].hasSuffix(","): self.init(rfc850: words, now)
        case 5: self.init(asctime: words)
        default: return nil
        }
    }

    /// Parses a date regardless of the case of its letters, as caches do (RFC 9111 §4.2).
    init?(anyCase text: String, now: HTTPDate = HTTPDate(Date())) {
        if let date = HTTPDate(text, now: now) {
            self = date
            return
        }
        var isInWord = false
        let letters = text.utf8.map { byte in
            let lower = byte.asciiLowercased
            let isLetter = ByteSet.lowerCaseLetters.contains(lower)
            defer { isInWord = isLetter }
            return isLetter && !isInWord ? lower & 0xDF : lower
        }
        let capitalized = String(decoding: letters, as: UTF8.self)
        let normal = capitalized.hasSuffix(" Gmt") ? capitalized.dropLast(3) + "GMT" : capitalized
        guard let date = HTTPDate(String(normal), now: now) else { return nil }
        self = date
    }

    /// Parses a date such as “Sun, 06 Nov 1994 08:49:37 GMT”.
    private init?(fixed words: [some StringProtocol]) {
        guard words[5] == "GMT", HTTPDate.isDayName(words[0].dropLast()), words[1].utf8.count == 2,
            words[3].utf8.count == 4
        else { return nil }
        self.init(year: words[3], month: words[2], day: words[1], time: words[4])
    }

    /// Parses a date such as “Sunday, 06-Nov-94 08:49:37 GMT”.
    private init?(rfc850 words: [some StringProtocol], _ now: HTTPDate) {
        let parts = words[1].split(separator: "-")
        guard words[3] == "GMT", HTTPDate.isDayName(words[0].dropLast().prefix(3)), parts.count == 3,
            parts[0].utf8.count == 2, let short = HTTPDate.number(parts[2], digits: 2)
        else { return nil }
        let century = HTTPDate.year(of: now.seconds) / 100 * 100
        // Try the current century and, if the date is too far in the future, the previous one.
        for year in [century + short, century - 100 + short] {
            guard let made = HTTPDate(year: "\(year)", month: parts[1], day: parts[0], time: words[2]) else { continue }
            if year > century - 100 && made.seconds > now.seconds + HTTPDate.fiftyYears && year >= century { continue }
            self = made
            return
        }
        return nil
    }

    /// Parses a date such as “Sun Nov  6 08:49:37 1994”.
    private init?(asctime words: [some StringProtocol]) {
        guard HTTPDate.isDayName(words[0]), words[4].utf8.count == 4, 1...2 ~= words[2].utf8.count else { return nil }
        self.init(year: words[4], month: words[1], day: words[2], time: words[3])
    }

    private init?(
        year: some StringProtocol, month: some StringProtocol, day: some StringProtocol, time: some StringProtocol
    ) {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let year = HTTPDate.number(year, digits: 4), let month = HTTPDate.months.firstIndex(of: String(month)),
            let day = HTTPDate.number(day, digits: day.utf8.count),
            let midnight = HTTPDate.seconds(year: year, month: month + 1, day: day), clock.count == 3,
            let hour = HTTPDate.number(clock[0], digits: 2), hour < 24,
            let minute = HTTPDate.number(clock[1], digits: 2), minute < 60,
            // A leap second counts as the second that follows it.
            let second = HTTPDate.number(clock[2], digits: 2), second <= 60
        else { return nil }
        seconds = midnight + Int64(hour * 3600 + minute * 60 + second)
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    private static let dayNames = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let fiftyYears: Int64 = 50 * 31_556_952

    private static func isDayName(_ text: some StringProtocol) -> Bool { dayNames.contains(String(text)) }

    private static func number(_ text: some StringProtocol, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ 48...57 ~= $0 }) else { return nil }
        return Int(text)
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func days(of month: Int, in year: Int) -> Int {
        month == 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    }

    /// Returns the days since 1970 in the Gregorian calendar; the count begins in March, so that the leap day is last.
    private static func days(until year: Int, month: Int, day: Int) -> Int64 {
        let years = month > 2 ? year : year - 1
        let era = (years >= 0 ? years : years - 399) / 400
        let yearOfEra = years - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return Int64(era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468)
    }

    /// Returns the seconds from 1970 to the start of a day; nil for a day that the calendar does not have.
    static func seconds(year: Int, month: Int, day: Int) -> Int64? {
        guard 1...12 ~= month, 1...days(of: month, in: year) ~= day else { return nil }
        return days(until: year, month: month, day: day) * 86_400
    }

    private static func date(of days: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = Int(days) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let fromMarch = (5 * dayOfYear + 2) / 153
        let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * fromMarch + 2) / 5 + 1)
    }

    private static func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }

    private static func year(of seconds: Int64) -> Int { date(of: floorDivide(seconds, by: 86_400)).year }
}

extension HTTPDate {
    /// The basic form of ISO 8601, such as `19941106T084937Z`, which only the fields of some signatures use.
    package var basicISO8601: String {
        let days = HTTPDate.floorDivide(seconds, by: 86_400)
        let (year, month, day) = HTTPDate.date(of: days)
        let time = Int(seconds - days * 86_400)
        func padded(_ number: Int, _ width: Int = 2) -> String {
            String(repeating: "0", count: max(0, width - "\(number)".utf8.count)) + "\(number)"
        }
        let clock = padded(time / 3600) + padded(time / 60 % 60) + padded(time % 60)
        return "\(padded(year, 4))\(padded(month))\(padded(day))T\(clock)Z"
    }
}

extension HTTPDate: CustomStringConvertible {
    /// The form for sending: `Sun, 06 Nov 1994 08:49:37 GMT`.
    package var description: String {
        let days = HTTPDate.floorDivide(seconds, by: 86_400)
        let (year, month, day) = HTTPDate.date(of: days)
        let time = Int(seconds - days * 86_400)
        let name = HTTPDate.dayNames[Int((days % 7 + 7) % 7)]
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let years = String(repeating: "0", count: max(0, 4 - "\(year)".count)) + "\(year)"
        let clock = "\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60))"
        return "\(name), \(two(day)) \(HTTPDate.months[month - 1]) \(years) \(clock) GMT"
    }
}
