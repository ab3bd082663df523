// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Terminal shows the progress of transfers to people and programs: pure lines, the board that holds them, and the
// display that writes the board to a terminal.

internal import Curlew
internal import CurlewSupport

extension StringProtocol {
    /// The maximum number of terminal columns that this text takes: wide East Asian characters and emoji take two.
    var columns: Int { reduce(0) { $0 + $1.columns } }
}

extension Character {
    /// The columns of the scalars together, since few terminals know which scalars form one emoji.
    fileprivate var columns: Int {
        let sum = unicodeScalars.reduce(0) { $0 + $1.columns }
        // A character with an emoji variation selector takes two columns in terminals that support the selector.
        return unicodeScalars.contains("\u{FE0F}") ? Swift.max(sum, 2) : sum
    }
}

extension Unicode.Scalar {
    fileprivate var columns: Int {
        if value < 0x300 { return value == 0xAD ? 0 : 1 }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        if properties.isEmojiPresentation { return 2 }
        switch value {
        // Vowels and final consonants of Hangul share the columns of the initial consonant.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF: return 0
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
            0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF,
            0x1AFF0...0x1B2FF, 0x1F1E6...0x1F1FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
            return 2
        default: return 1
        }
    }
}

extension String {
    /// Returns this text in at most `most` columns: a longer text is cut in the middle, where an ellipsis replaces the
    /// cut, because the start and the end identify the text best.
    func shortened(toColumns most: Int) -> String {
        guard columns > most else { return self }
        guard most > 1 else { return most == 1 ? "…" : "" }
        var (head, tail, room) = ("", "", most - 1)
        var rest = self[...]
        while true {
            guard let first = rest.first, first.columns <= (room + 1) / 2 || first.columns <= room else { break }
            head.append(rest.removeFirst())
            room -= first.columns
            guard let last = rest.last, last.columns <= room else { break }
            tail.insert(rest.removeLast(), at: tail.startIndex)
            room -= last.columns
        }
        return head + "…" + tail
    }

    /// Returns this text in at least `least` columns, filled with blanks.
    func padded(toColumns least: Int, atStart: Bool = false) -> String {
        let blanks = String(repeating: " ", count: Swift.max(least - columns, 0))
        return atStart ? blanks + self : self + blanks
    }
}

extension Duration {
    /// Hours, minutes and seconds as clocks show them, rounded up: "1:02:03", "0:07".
    var clock: String {
        let (whole, rest) = asWait.components
        let seconds = whole + (rest > 0 ? 1 : 0)
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(seconds % 60))" : "\(minutes):\(two(seconds % 60))"
    }
}
