// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Checks the order of events that TransferEvent documents.
enum EventGrammar {
    private static let steps = [
        "queued", "resolved", "connected", "reused", "secured", "sent", "head", "received", "metrics",
    ]

    /// Returns a description of the first violation in the words of one transfer, or nil if they are in order.
    ///
    /// - Parameters:
    ///   - words: The values of `TransferEvent.word`.
    ///   - isWhole: Whether the words have to include the end.
    static func flaw(in words: [String], isWhole: Bool = true) -> String? {
        var check = Check()
        // An observer that subscribes between two attempts receives no state event.
        check.isLate = !isWhole && words.first.map { $0.hasPrefix("redirected") || $0 == "retried" } == true
        for (index, word) in words.enumerated() {
            if let flaw = check.take(word, isFirst: index == 0) { return "\(flaw) (\(word) at \(index))" }
        }
        return isWhole && !check.isOver ? "no end" : nil
    }

    private struct Check {
        /// The index of the attempt's last step; -1 before the first.
        var step = -1
        var isPaused = false
        var isOver = false
        /// Whether an attempt has begun and not ended.
        var isOpen = false
        var isLate = false

        mutating func take(_ full: String, isFirst: Bool) -> String? {
            let word = String(full.prefix { $0 != " " && $0 != ":" })
            if isOver { return "an event after the end" }
            switch word {
            case "is":
                isLate = true
                isOpen = full != "is finished"
                isPaused = full == "is paused"
                return isFirst ? nil : "a state that is not the first"
            case "dropped": return nil
            case "waiting": return isOpen && !isLate ? "a wait before the end of its attempt" : nil
            case "paused", "resumed": return turn(word)
            case "restarted": return restart()
            case "informational": return inform()
            case "redirected", "retried": return follow()
            case "finished":
                isOver = true
                // An observer that subscribed after the metrics receives only the end.
                return isOpen && !(isLate && step < 0) ? "an end without metrics" : nil
            default: return advance(word)
            }
        }

        private mutating func turn(_ word: String) -> String? {
            defer { isPaused = word == "paused" }
            return isPaused == (word == "paused") ? "\(word) twice" : nil
        }

        private mutating func restart() -> String? {
            guard isOpen, isLate || step >= 0 else { return "restarted before it began" }
            step = 0
            return nil
        }

        private mutating func inform() -> String? {
            let head = EventGrammar.steps.firstIndex(of: "head") ?? 0
            return isOpen && step < head ? nil : "informational outside of an attempt or after the head"
        }

        private mutating func follow() -> String? {
            guard !isOpen || isLate else { return "another attempt before the metrics of this one" }
            (step, isOpen, isLate, isPaused) = (-1, false, false, false)
            return nil
        }

        private mutating func advance(_ word: String) -> String? {
            guard let index = EventGrammar.steps.firstIndex(of: word) else { return "an unknown word" }
            if word == "queued" {
                guard step < 0 else { return "queued twice" }
            } else if !isOpen, !(isLate && word == "metrics") {
                return word == "metrics" && step < 0 ? ended(index) : "outside of an attempt"
            }
            guard index > step else { return "out of order" }
            if word == "metrics" { return ended(index) }
            step = index
            isOpen = true
            return nil
        }

        private mutating func ended(_ index: Int) -> String? {
            step = index
            isOpen = false
            return nil
        }
    }
}
