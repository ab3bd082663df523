// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// A small downloader; `make demo-download` runs it. Start reading with Downloader.swift, which does the work.
// Order.swift parses the command line, Interrupt.swift handles Ctrl-C, and Demonstration.swift runs if there are no
// arguments.

import Curlew
import Glibc

@main
struct Download {
    static func main() async {
        do {
            let order = try Order(CommandLine.arguments.dropFirst())
            if order.urls.isEmpty { try await Demonstration().run(order.form) }
            let interrupts = Interrupt.firstSignal()
            let downloader = Downloader(order)
            let work = Task { await downloader.run() }
            let interrupt = Task { () -> Int32? in
                for await number in interrupts {
                    work.cancel()
                    return number
                }
                return nil
            }
            let status = await work.value
            interrupt.cancel()
            let number = await interrupt.value
            exit(number.map { 128 + $0 } ?? status)
        } catch let refusal as Order.Refusal {
            complain(refusal.description)
            exit(refusal.status)
        } catch {
            complain("error: \(error)")
            exit(1)
        }
    }
}

/// Writes a line to standard error.
func complain(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    write(STDERR_FILENO, bytes, bytes.count)
}
