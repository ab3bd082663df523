// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The smallest program that sends a request, to measure the cost of a start.

import Curlew
import Glibc

@main
struct OneGet {
    static func main() async throws {
        let (data, head) = try await Session.shared.data(for: Request(CommandLine.arguments.last ?? ""))
        if head.status != 200 || data.count != 1024 { exit(1) }
    }
}
