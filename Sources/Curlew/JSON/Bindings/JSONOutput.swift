// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads texts of a ``JSONWriter``, and rewrites them for options such as sorted names.
enum JSONOutput {
    /// Returns the name at the start of a text, after its quotation mark.
    static func name(_ text: UnsafeBufferPointer<UInt8>) -> String? {
        var end = 0
        while end < text.count, text[end] != UInt8(ascii: "\"") { end += text[end] == UInt8(ascii: "\\") ? 2 : 1 }
        guard end < text.count else { return nil }
        let index = JSONIndex()
        defer { index.free() }
        let quoted = [UInt8(ascii: "\"")] + text[...end]
        return quoted.withUnsafeBufferPointer { quoted in
            (try? index.read(quoted)).map { index.string(index[0]) }
        }
    }

    /// Returns the text with sorted members, the last member of each name, or indentation, according to the plan.
    static func rewritten(_ text: UnsafeBufferPointer<UInt8>, _ plan: EncodingPlan) throws(JSONFlaw) -> [UInt8] {
        let index = JSONIndex()
        defer { index.free() }
        try index.read(text)
        var output: [UInt8] = []
        output.reserveCapacity(text.count + text.count / 8)
        Rewriter(index: index, plan: plan).write(0, 0, to: &output)
        return output
    }

    private struct Rewriter {
        let index: JSONIndex
        let plan: EncodingPlan

        /// Writes a value and its contents; the index limits the levels, so it also limits the recursion.
        func write(_ place: Int, _ level: Int, to output: inout [UInt8]) {
            let entry = index[place]
            switch entry.kind {
            case .array: list(elements(place), level, "[", "]", to: &output) { write($0, level + 1, to: &$1) }
            case .object:
                list(members(place), level, "{", "}", to: &output) { name, output in
                    token(name, to: &output)
                    if plan.isPretty { output.append(0x20) }
                    output.append(UInt8(ascii: ":"))
                    if plan.isPretty { output.append(0x20) }
                    write(name + 1, level + 1, to: &output)
                }
            default: token(place, to: &output)
            }
        }

        private func token(_ place: Int, to output: inout [UInt8]) {
            let entry = index[place]
            if entry.isText { output.append(UInt8(ascii: "\"")) }
            output += index.bytes(entry)
            if entry.isText { output.append(UInt8(ascii: "\"")) }
        }

        private func list(
            _ places: [Int], _ level: Int, _ start: Unicode.Scalar, _ end: Unicode.Scalar, to output: inout [UInt8],
            _ write: (Int, inout [UInt8]) -> Void
        ) {
            output.append(UInt8(ascii: start))
            for (number, place) in places.enumerated() {
                if number > 0 { output.append(UInt8(ascii: ",")) }
                newLine(level + 1, to: &output)
                write(place, &output)
            }
            // Foundation writes an empty line in empty containers.
            if places.isEmpty { newLine(0, to: &output) }
            newLine(level, to: &output)
            output.append(UInt8(ascii: end))
        }

        private func newLine(_ level: Int, to output: inout [UInt8]) {
            guard plan.isPretty else { return }
            output.append(0x0A)
            output += repeatElement(0x20, count: level * 2)
        }

        private func elements(_ array: Int) -> [Int] {
            var (places, place) = ([Int](), array + 1)
            while place < index[array].next {
                places.append(place)
                place = index.behind(place)
            }
            return places
        }

        /// Returns the last member of each name of an object, in the order of the text or sorted by code point.
        private func members(_ object: Int) -> [Int] {
            var (places, place) = ([Int](), object + 1)
            var known: [String: Int] = [:]
            while place < index[object].next {
                let name = index.string(index[place])
                if let first = known[name] {
                    places[first] = place
                } else {
                    known[name] = places.count
                    places.append(place)
                }
                place = index.behind(place + 1)
            }
            guard plan.isSorted else { return places }
            return places.map { (place: $0, name: Array(index.string(index[$0]).utf8)) }
                .sorted { $0.name.lexicographicallyPrecedes($1.name) }.map(\.place)
        }
    }
}
