// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Measuring

/// The options of the command line, each `--name value`.
struct Options {
    /// The name of one document, or `memory`; all by default.
    let only: String?
    /// The number of rounds.
    let rounds: Int
    /// The number of uses of one coder in one direction, for callgrind; nil to measure time.
    let count: Int?
    let coder: Coder
    let direction: Direction
    /// The row of the memory table that this process measures.
    let memory: Memory?

    init(_ arguments: ArraySlice<String>) {
        var values: [String: String] = [:]
        var words = arguments
        while let name = words.popFirst() {
            guard Options.names.contains(name), let value = words.popFirst() else { die(Options.usage) }
            values[name] = value
        }
        func known<Value>(_ name: String, _ otherwise: Value, _ read: (String) -> Value?) -> Value {
            guard let text = values[name] else { return otherwise }
            guard let value = read(text) else { die(Options.usage) }
            return value
        }
        func positive(_ text: String) -> Int? { Int(text).flatMap { $0 > 0 ? $0 : nil } }
        only = values["--only"]
        rounds = known("--rounds", 15, positive)
        count = known("--repeat", nil) { positive($0) }
        coder = known("--coder", .ours, Coder.init)
        direction = known("--direction", .decode, Direction.init)
        memory = known("--memory", nil) { Memory(rawValue: $0) }
    }

    private static let names: Set = ["--only", "--rounds", "--repeat", "--coder", "--direction", "--memory"]
    private static let usage = """
        usage: json-bench [--only NAME] [--rounds N]
               json-bench --only NAME --repeat N [--coder ours|foundation] [--direction decode|encode]
        NAME: order, object, page, dates, array, tree, doubles, maps, or memory
        """
}
