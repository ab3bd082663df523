// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A terminal emulator for tests, with text, line ends and the escape sequences that the progress display uses.
struct Screen {
    private(set) var columns: Int
    let height: Int
    /// Lines that have scrolled off the top of the screen.
    private(set) var history: [String] = []
    private var rows: [[String]] = [[]]
    private(set) var row = 0
    private(set) var column = 0
    /// The number of lines that were wrapped.
    private(set) var wraps = 0
    /// Control characters and escape sequences that the emulator does not support.
    private(set) var unknown: [String] = []
    /// Whether any text was coloured.
    private(set) var isColoured = false
    private var sequence: String?

    init(columns: Int = 80, height: Int = 24) {
        self.columns = columns
        self.height = height
    }

    init(_ text: String, columns: Int = 80, height: Int = 24) {
        self.init(columns: columns, height: height)
        feed(text)
    }

    /// The lines on the screen, without trailing blanks and without trailing empty lines.
    var lines: [String] {
        var lines = rows.map(Self.text)
        while lines.last == "" { lines.removeLast() }
        return lines
    }

    /// All lines, including those that have scrolled off.
    var everything: [String] { history + lines }

    mutating func feed(_ text: String) {
        for scalar in text.unicodeScalars {
            if let open = sequence { step(open, scalar) } else { take(scalar) }
        }
    }

    /// Changes the width and wraps lines that are too long, as most terminals do.
    mutating func resize(columns: Int) {
        let old = rows
        var new: [[String]] = []
        for (index, cells) in old.enumerated() {
            if index == row { row = new.count }
            var rest = cells[...]
            repeat {
                new.append(Array(rest.prefix(columns)))
                rest = rest.dropFirst(columns)
            } while !rest.isEmpty
        }
        (rows, self.columns) = (new, columns)
        while rows.count > height { scroll() }
    }

    private mutating func take(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\u{1B}": sequence = ""
        case "\r": column = 0
        case "\n":
            column = 0
            lineFeed()
        case "\u{300}"..."\u{36F}", "\u{FE0F}", "\u{200D}":
            if column > 0 { rows[row][column - 1].unicodeScalars.append(scalar) }
        default: put(scalar)
        }
    }

    private mutating func put(_ scalar: Unicode.Scalar) {
        if scalar.value < 0x20 || 0x7F..<0xA0 ~= scalar.value { unknown.append("control \(scalar.value)") }
        let isWide = 0x1100..<0x1160 ~= scalar.value || 0x2E80..<0xD7A4 ~= scalar.value || scalar.value >= 0xFF00
        if column + (isWide ? 2 : 1) > columns {
            wraps += 1
            column = 0
            lineFeed()
        }
        while rows[row].count <= column + (isWide ? 1 : 0) { rows[row].append(" ") }
        rows[row][column] = String(scalar)
        if isWide { rows[row][column + 1] = "" }
        column += isWide ? 2 : 1
    }

    private mutating func lineFeed() {
        row += 1
        if row == rows.count { rows.append([]) }
        if rows.count > height { scroll() }
    }

    private mutating func scroll() {
        history.append(Self.text(rows.removeFirst()))
        row -= 1
    }

    private mutating func step(_ open: String, _ scalar: Unicode.Scalar) {
        let now = open + String(scalar)
        sequence = now
        guard now != "[", !("0"..."9" ~= scalar || scalar == ";" || scalar == "?") else { return }
        sequence = nil
        let number = Int(now.dropFirst().dropLast())
        switch (now.first, scalar) {
        case ("[", "A"): row = max(row - max(number ?? 1, 1), 0)
        case ("[", "K") where number == nil: rows[row] = Array(rows[row].prefix(column))
        case ("[", "J") where number == nil:
            rows[row] = Array(rows[row].prefix(column))
            rows = Array(rows.prefix(row + 1))
        case ("[", "m"): isColoured = isColoured || number != 0
        default: unknown.append(now)
        }
    }

    private static func text(_ cells: [String]) -> String {
        var text = cells.joined()
        while text.last == " " { text.removeLast() }
        return text
    }
}
