// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures CPU time and memory of the JSON coder alone, without a network, compared with Foundation's coders.

import Measuring

@main
struct JSONBench {
    static func main() throws {
        let options = Options(CommandLine.arguments.dropFirst())
        if let memory = options.memory { return try memory.measure() }
        let documents = Document.all().filter { options.only == nil || options.only == $0.name }
        if documents.isEmpty && options.only != "memory" { die("no document is called \(options.only ?? "")") }
        if let count = options.count {
            for document in documents { try document.repeated(count, options.coder, options.direction) }
            return
        }
        if !documents.isEmpty { try printTimes(of: documents, options.rounds) }
        if options.only == nil { print("") }
        if options.only == nil || options.only == "memory" { Memory.printTable() }
    }

    private static func printTimes(of documents: [Document], _ rounds: Int) throws {
        print("| document | bytes | | Foundation, µs | ours, µs | Foundation ÷ ours | target | |")
        print("|---|--:|---|--:|--:|--:|--:|---|")
        for document in documents {
            let opened = try document.open()
            guard try opened.isSame() else { die("\(document.name): the coders do not agree") }
            for direction in Direction.allCases {
                let times = try Times(opened, direction, rounds)
                let target = document.targets[direction]
                let verdict = target.map { times.ratio >= $0 ? "met" : "**not met**" }
                let cells = [
                    document.title, "\(opened.bytes)", direction.rawValue, fixed(times.foundation, 1),
                    fixed(times.ours, 1), fixed(times.ratio, 2), target.map { "≥ \(fixed($0, 1))" } ?? "–",
                    verdict ?? "",
                ]
                print("| " + cells.joined(separator: " | ") + " |")
            }
        }
    }
}

extension Document {
    /// Decodes or encodes the document `count` times, for a program that counts instructions.
    fileprivate func repeated(_ count: Int, _ coder: Coder, _ direction: Direction) throws {
        let opened = try open()
        for _ in 0..<count { try opened.use(coder, direction) }
    }
}

/// Medians over rounds in which both coders alternate: CPU microseconds for each use, and the ratio within a round.
private struct Times {
    /// The minimum duration of a round in nanoseconds.
    private static let span: UInt64 = 20_000_000
    let foundation: Double
    let ours: Double
    let ratio: Double

    init(_ opened: any Opened, _ direction: Direction, _ rounds: Int) throws {
        let counts = try Coder.allCases.map { try Times.count(opened, $0, direction) }
        var results: [[Double]] = []
        for round in 0..<rounds {
            var result = [0.0, 0.0]
            for index in round % 2 == 0 ? [0, 1] : [1, 0] {
                let time = try Times.time(opened, Coder.allCases[index], direction, counts[index])
                result[index] = Double(time) / Double(counts[index]) / 1_000
            }
            results.append(result)
        }
        foundation = Times.median(results.map { $0[0] })
        ours = Times.median(results.map { $0[1] })
        ratio = Times.median(results.map { $0[0] / $0[1] })
    }

    /// Returns the number of uses that take `span`; the first uses also warm up the coder.
    private static func count(_ opened: any Opened, _ coder: Coder, _ direction: Direction) throws -> Int {
        var count = 1
        while try time(opened, coder, direction, count) < span / 2 { count *= 2 }
        return count * 2
    }

    private static func time(
        _ opened: any Opened, _ coder: Coder, _ direction: Direction, _ count: Int
    ) throws -> UInt64 {
        let began = processTime()
        for _ in 0..<count { try opened.use(coder, direction) }
        return processTime() - began
    }

    private static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
    }
}

/// Returns a number as text with the given number of decimal digits.
func fixed(_ value: Double, _ digits: Int) -> String {
    let scale = (0..<digits).reduce(1.0) { power, _ in power * 10 }
    let text = "\((value * scale).rounded() / scale)"
    let missing = digits - (text.utf8.count - (text.firstIndex(of: ".").map { text[...$0].utf8.count } ?? 0))
    return text + String(repeating: "0", count: max(0, missing))
}
