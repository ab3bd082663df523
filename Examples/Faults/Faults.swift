// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make demo-faults` runs: it produces the possible faults between a client and a server one by one
// and prints Curlew's errors. FaultTable.swift has the faults, Stage.swift has the servers that produce them.

import Curlew
import Glibc

@main
struct Faults {
    /// The time after which a request without a result counts as hanging.
    private static let patience = Duration.seconds(10)

    static func main() async {
        do {
            let stage = try Stage()
            var (clear, hangs) = (0, 0)
            say(row("the server", "Curlew says", "while", "in words", "after"))
            for fault in Fault.all {
                let began = ContinuousClock.now
                let request = try fault.prepare(stage)
                var answer = await answer(request, stage.session)
                for _ in 1..<fault.times { answer = await self.answer(request, stage.session) }
                let time = began.duration(to: .now)
                if answer == nil { hangs += 1 }
                let isExpected = answer?.kind == fault.expected && answer != nil
                if isExpected { clear += 1 }
                say(
                    row(
                        fault.name, answer?.title ?? "NOTHING", answer?.phase ?? "", answer?.message ?? "",
                        milliseconds(time)) + (isExpected ? "" : "  <- unexpected"))
            }
            let count = Fault.all.count
            say("", "\(count) faults, \(clear) clear results, \(hangs) hangs")
            exit(clear == count ? 0 : 1)
        } catch {
            say("error: \(error)")
            exit(1)
        }
    }

    /// The result of a request.
    private struct Answer {
        /// Nil for a response.
        var kind: NetworkError.Kind?
        var title: String
        var phase = ""
        var message: String
    }

    /// Sends a request and returns its result; nil if the result does not arrive in time.
    private static func answer(_ request: Request, _ session: Session) async -> Answer? {
        let (answers, late) = AsyncStream<Answer?>.makeStream()
        let asking = Task {
            do throws(NetworkError) {
                let (body, head) = try await session.data(for: request)
                late.yield(Answer(title: "\(head.status)", message: "\(body.count) bytes"))
            } catch {
                late.yield(
                    Answer(kind: error.kind, title: "\(error.kind)", phase: "\(error.phase)", message: error.message))
            }
        }
        let clock = Task {
            try await Task.sleep(for: patience)
            late.yield(nil)
        }
        defer {
            asking.cancel()
            clock.cancel()
        }
        for await answer in answers { return answer }
        return nil
    }

    // MARK: The table

    private static func row(_ fault: String, _ kind: String, _ phase: String, _ words: String, _ time: String) -> String
    {
        [padded(fault, 45), padded(kind, 17), padded(phase, 10), padded(words, 64), time].joined(separator: " ")
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        if text.count > width { return text.prefix(width - 1) + "…" }
        return text + String(repeating: " ", count: width - text.count)
    }

    private static func milliseconds(_ time: Duration) -> String {
        let whole = time / .milliseconds(1)
        let text = "\(Int(whole.rounded())) ms"
        return String(repeating: " ", count: max(0, 7 - text.count)) + text
    }

    private static func say(_ lines: String...) { for line in lines { print(line) } }
}
