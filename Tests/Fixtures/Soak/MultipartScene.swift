// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Glibc

/// Sends a form whose files are much longer than any buffer and measures the memory.
struct MultipartScene {
    struct Result: Codable {
        /// Resident memory before the form is sent, and the peak since the process started, in KiB.
        var base: Int
        var peak: Int
        /// The length of the body in bytes, counted by the client and by the server.
        var sent: Int64
        var received: Int64
        var isPartFinished: [Bool]
    }

    let origin: String
    let mebibytes: Int64

    func run() async throws -> Result {
        let session = Session()
        // Warm up, so that the connection, the loop's buffers and the thread that reads files exist before the
        // measurement.
        _ = try await session.data(for: request(form(of: "/etc/passwd")))
        let base = ProcessFigures.memory("VmRSS")
        let path = FileManager.default.temporaryDirectory.path + "/curlew-soak-\(UUID().uuidString)"
        defer { unlink(path) }
        try Self.makeSparse(path, length: mebibytes << 20)
        let form = form(of: path)
        let transfer = session.transfer(request(form))
        // Observe the progress all the time, like an application.
        for await progress in transfer.progress { _ = form.progress(at: progress) }
        let answer = try await transfer.value
        return Result(
            base: base, peak: ProcessFigures.memory("VmHWM"), sent: transfer.currentProgress.sent,
            received: Int64(String(decoding: answer, as: UTF8.self)) ?? -1,
            isPartFinished: form.progress(at: transfer.currentProgress).map(\.isFinished))
    }

    private func form(of path: String) -> MultipartForm {
        MultipartForm {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("image", file: path)
            MultipartForm.Part("log", stream: Pieces(count: 30))
        }
    }

    private func request(_ form: MultipartForm) -> Request {
        Request(.post, origin + "/form", fields: form.fields, body: .multipart(form))
    }

    /// Creates a sparse file of zeros, which takes no space on the disk.
    private static func makeSparse(_ path: String, length: Int64) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw POSIXError(.EIO) }
        defer { close(number) }
        guard ftruncate(number, off_t(length)) == 0 else { throw POSIXError(.EFBIG) }
    }
}
