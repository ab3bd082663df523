// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The parser for the dates of cookies (RFC 6265bis §5.1.1), which accepts far more spellings than HTTP does.
enum CookieDate {
    /// Returns the seconds since 1970; nil for a text that is not a date.
    static func seconds(_ text: some StringProtocol) -> Int64? {
        var found = Found()
        for token in text.utf8.split(whereSeparator: isDelimiter) { found.take(token) }
        return found.seconds
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The parts found so far; the first token that matches a part decides it.
    private struct Found {
        private var time: (hour: Int, minute: Int, second: Int)?
        private var day: Int?
        private var month: Int?
        private var year: Int?

        mutating func take(_ token: some Collection<UInt8>) {
            let token = Array(token)
            if time == nil, let time = Found.time(token) { return self.time = time }
            if day == nil, let day = Found.number(token, digits: 1...2) { return self.day = day }
            if month == nil, let month = Found.month(token) { return self.month = month }
            if year == nil, let year = Found.number(token, digits: 2...4) { self.year = year }
        }

        var seconds: Int64? {
            guard let time, let day, let month, var year else { return nil }
            if 70...99 ~= year { year += 1900 } else if 0...69 ~= year { year += 2000 }
            guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59,
                let midnight = HTTPDate.seconds(year: year, month: month, day: day)
            else { return nil }
            return midnight + Int64(time.hour * 3600 + time.minute * 60 + time.second)
        }

        /// Returns a number at the start of a token; nil if the digits are too few or too many.
        private static func number(_ token: [UInt8], digits: ClosedRange<Int>) -> Int? {
            let count = token.prefix { ByteSet.digits.contains($0) }.count
            guard digits.contains(count) else { return nil }
            return token[..<count].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        /// Parses three numbers of one or two digits with colons between them; the last one may precede other text.
        private static func time(_ token: [UInt8]) -> (hour: Int, minute: Int, second: Int)? {
            let fields = token.split(separator: 0x3A, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
            guard fields.count == 3, fields[..<2].allSatisfy({ $0.allSatisfy(ByteSet.digits.contains) }),
                let hour = number(fields[0], digits: 1...2), let minute = number(fields[1], digits: 1...2),
                let second = number(fields[2], digits: 1...2)
            else { return nil }
            return (hour, minute, second)
        }

        private static func month(_ token: [UInt8]) -> Int? {
            guard token.count >= 3 else { return nil }
            let name = String(decoding: token[..<3].map(\.asciiLowercased), as: UTF8.self)
            return months.firstIndex(of: name).map { $0 + 1 }
        }

        private static let months = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ]
    }
}
