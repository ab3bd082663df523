// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The program that `make run` runs. Start reading here and continue with LoopbackTour.swift, which uses Curlew; the
// other files contain the progress bar and the checks.

import Curlew
import Glibc

@main
struct Tour {
    static let usage = """
        usage: Tour [URL]

        Without an argument, starts a server on this machine and shows what Curlew does with it: JSON, a large
        download, an upload, a cancellation, an error, TLS. With one, downloads that http or https URL and, where
        curl is installed, compares what both received.

        Ends with status 0 when every byte was right, 1 when something differed, else with the error's own status.
        """

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        do {
            switch arguments.first {
            case "--help", "-h": say(usage)
            case let url? where arguments.count == 1 && !url.hasPrefix("-"): try await Download(url: url).run()
            case nil: try await LoopbackTour().run()
            default:
                complain(usage)
                exit(64)
            }
        } catch let error as NetworkError {
            complain("error: " + error.detailedDescription)
            exit(error.exitCode)
        } catch {
            complain("error: \(error)")
            exit(1)
        }
    }
}
