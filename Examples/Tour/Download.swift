// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// The tour with a URL: downloads it with Curlew and with curl and compares the results.
struct Download {
    let url: String

    func run() async throws {
        let session = Session()
        let transfer = session.transfer(Request(url))
        say("\(transfer.request)")
        let received = try await watch(transfer)

        if let status = received.status { say("   \(status)") }
        if let metrics = transfer.metrics { say("   \(metrics)") }
        say("   \(received.length) bytes, SHA-256 \(received.sha256)")
        try await session.shutdown()

        guard Curl.isInstalled else { return say("   curl is not installed, so the comparison is skipped.") }
        let userAgent = session.configuration.fields[.userAgent] ?? ""
        let theirs = try Curl.download(url, userAgent: userAgent)
        try expect("the length that curl received", theirs.length, is: received.length)
        try expect("the digest of what curl received", theirs.sha256, is: received.sha256)
        say("   curl received the same bytes.")
    }
}
