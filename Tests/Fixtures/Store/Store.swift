// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-store is a process for tests that kill it: it opens a store, resumes the stored downloads, begins the missing
// ones, and prints a line for each event. StoreKillTests ends it at every step that changes files, and starts it again.

import CKillPoint
import Curlew
import FoundationEssentials
import Glibc

@main
struct Store {
    /// The arguments are DIRECTORY, ORIGIN, the number of downloads, and the numbers of the already begun downloads.
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let count = Int(arguments[3]) else {
            print("usage: curlew-store DIRECTORY ORIGIN COUNT KNOWN,KNOWN,…")
            exit(2)
        }
        let (directory, origin) = (arguments[1], arguments[2])
        var known = Set(arguments[4].split(separator: ",").map(String.init))
        let session = Session { $0.retry = .upTo(3) }
        let store = try await TransferStore(at: directory + "/store")
        known.formUnion(store.downloads.compactMap { $0.userInfo["number"] })
        for earlier in await store.reattach(session) { say("attached \(earlier.record.userInfo["number"] ?? "?")") }
        for number in 0..<count where !known.contains("\(number)") {
            let destination: DownloadDestination =
                number % 2 == 0 ? .file("\(directory)/files/\(number)") : .directory("\(directory)/files")
            var options = DownloadOptions()
            // The last download is large enough for several segments.
            if number == 3 { options.segments = 3 }
            try await store.download(
                Request("\(origin)/\(number)"), on: session, to: destination,
                overwrite: number % 3 == 0 ? .uniquify : .fail, options: options, userInfo: ["number": "\(number)"])
            say("begun \(number)")
        }
        reports: for await report in store.reports {
            switch report {
            case .finished(let record):
                say("finished \(record.userInfo["number"] ?? "?") \(record.bytes ?? -1) \(record.path ?? "?")")
            case .failed(let record): say("failed \(record.userInfo["number"] ?? "?") \(record.failure ?? "?")")
            case .drained: break reports
            }
        }
        say("drained \(kill_point_steps())")
    }

    /// Writes a line at once, without buffering.
    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }
}
