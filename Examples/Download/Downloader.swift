// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

/// Downloads what was ordered, several at once, with a bar for each.
///
/// What could not be downloaded, or was interrupted, leaves a part that the next run goes on with.
struct Downloader {
    /// What came of everything.
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
        // Programs read standard output; people see bars although it goes elsewhere.
        let display = TerminalProgress(to: order.form == .json ? 1 : 2, as: order.form)
        await order.urls.forEachConcurrent(limit: order.atMost) { await download($0, display) }
        // The ends of all, before what is said of them.
        await display.finish()
        if Task.isCancelled { display.note("Interrupted.") }
        let parts = await outcome.parts
        if !parts.isEmpty {
            let kept = ByteCount(parts.reduce(0) { $0 + $1.offset })
            let files = parts.count == 1 ? "1 file" : "\(parts.count) files"
            display.note("\(kept) of \(files) are kept; the same command again gets the rest.")
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
        if !order.goesOn { request.options.retry = RetryPolicy.none }
        let transfer = session.transfer(request, to: .directory(order.directory), expecting: order.checksum)
        display.watch(transfer)
        do throws(NetworkError) {
            await outcome.add(try await transfer.value)
        } catch {
            // Waits until the part is written, also when it was this task that was cancelled.
            let part = await transfer.cancel(producingResumeToken: true)
            await outcome.add(error, part)
        }
    }
}
