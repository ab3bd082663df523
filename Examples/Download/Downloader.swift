// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTerminal

/// Downloads the URLs of an order, several at once, with a progress bar for each.
///
/// A failed or interrupted download leaves a partial file, which the next run resumes.
struct Downloader {
    /// The results of all downloads.
    actor Outcome {
        private(set) var files: [DownloadedFile] = []
        private(set) var errors: [NetworkError] = []
        private(set) var parts: [ResumeToken] = []

        func add(_ file: DownloadedFile) { files.append(file) }

        func add(_ error: NetworkError, _ part: ResumeToken?) {
            errors.append(error)
            if let part { parts.append(part) }
        }
    }

    let order: Order
    let outcome = Outcome()
    private let session = Session()

    init(_ order: Order) { self.order = order }

    /// Downloads everything.
    ///
    /// - Returns: The status to exit with.
    func run() async -> Int32 {
        // JSON goes to standard output for other programs; bars go to standard error, so that a user sees them anyway.
        let display = TerminalProgress(to: order.form == .json ? 1 : 2, as: order.form)
        await order.urls.forEachConcurrent(limit: order.atMost) { await download($0, display) }
        // Show the ends of all downloads before the summary.
        await display.finish()
        if Task.isCancelled { display.note("Interrupted.") }
        let parts = await outcome.parts
        if !parts.isEmpty {
            let kept = ByteCount(parts.reduce(0) { $0 + $1.offset })
            let files = parts.count == 1 ? "1 file" : "\(parts.count) files"
            display.note("\(kept) of \(files) are kept; run the same command again to get the rest.")
        }
        await display.finish()
        let errors = await outcome.errors
        if order.form == .silent { for error in errors { complain("error: \(error)") } }
        try? await session.shutdown()
        return errors.first?.exitCode ?? 0
    }

    private func download(_ url: String, _ display: TerminalProgress) async {
        if Task.isCancelled { return }
        var request = Request(url)
        if !order.retries { request.options.retry = RetryPolicy.never }
        let transfer = session.downloadTransfer(request, to: .directory(order.directory), expecting: order.checksum)
        display.watch(transfer)
        do throws(NetworkError) {
            await outcome.add(try await transfer.value)
        } catch {
            // Wait until the partial file is written, even if this task itself was cancelled.
            let part = await transfer.cancel(producingResumeToken: true)
            await outcome.add(error, part)
        }
    }
}
