// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Prints changes of the network, the activity of a session and memory pressure as they happen.
//     swift run Watch [HOST or ADDRESS …]
//
// Each line of the input is a URL to request; an empty line requests a slow local server. The program ends at the end
// of its input.

import Curlew
import CurlewTerminal
import CurlewTesting
import Dispatch
import Glibc

@main
struct Watch {
    static func main() async throws {
        let server = try MockServer { _ in .text("hello").dripping(bytes: 1, every: .milliseconds(300)) }
        let session = Session { $0.retry = RetryPolicy(limit: 3, backoff: .none, waitsForConnectivity: true) }
        let activity = ActivityMonitor(for: session)
        let actions = [
            activity.perform(.spinner(label: "loading")),
            activity.perform(.serviceStatus(active: "loading", idle: "waiting for input")),
        ]
        say("memory: \(await MemoryPressure.shared.support)")

        await withTaskGroup { tasks in
            tasks.addTask { for await path in PathMonitor.shared { say("path: \(path)") } }
            for host in CommandLine.arguments.dropFirst() {
                tasks.addTask { for await path in PathMonitor(host: host) { say("\(host): \(path)") } }
            }
            tasks.addTask { for await isActive in activity { say("activity: \(isActive ? "on" : "off")") } }
            tasks.addTask { for await level in MemoryPressure.shared { say("memory: \(level)") } }

            await withTaskGroup { requests in
                for await line in input() {
                    requests.addTask { await load(line.isEmpty ? server.url() : line, by: session) }
                }
            }
            tasks.cancelAll()
        }
        // The spinner is removed before the program ends.
        for action in actions {
            action.cancel()
            await action.value
        }
    }

    /// Requests a URL and prints the result.
    static func load(_ url: String, by session: Session) async {
        say("request: \(url)")
        do throws(NetworkError) {
            let response = try await session.transfer(Request(url)).response()
            say("response: \(response.head.status.code) at attempt \(response.head.earlier.count + 1)")
        } catch {
            say("error: \(error.message)")
        }
    }

    /// The lines of the standard input; a separate thread reads them, because a read blocks its thread.
    static func input() -> AsyncStream<String> {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        DispatchQueue(label: "input").async {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return lines
    }

    /// Prints a line, and flushes the output so that a pipe receives it at once.
    static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        write(STDOUT_FILENO, line, line.count)
    }
}
