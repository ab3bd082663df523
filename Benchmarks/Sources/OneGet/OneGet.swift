// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The smallest program that fetches something: what it costs to start.

import Curlew
import Dispatch
import Glibc

@main
struct OneGet {
    static func main() {
        let url = CommandLine.arguments.last ?? ""
        let done = DispatchSemaphore(value: 0)
        // Apart from the main actor, whose thread waits.
        Task.detached {
            do {
                let (data, head) = try await Session.shared.data(for: Request(url))
                if head.status != 200 || data.count != 1024 { exit(1) }
            } catch {
                exit(1)
            }
            done.signal()
        }
        done.wait()
    }
}
