// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FoundationNetworking
import Measuring

/// One large body with a delegate: received in chunks, or sent from a stream.
// Safe because the session calls its delegate on one serial queue, and the continuation is set before the task starts.
final class BodyTask: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let job: Job
    private let file: OutputFile?
    private var received = 0
    private var taken = 0
    private var answer = Data()
    private var end: CheckedContinuation<Int, any Error>?

    init(_ job: Job) {
        self.job = job
        file = job.file.map { OutputFile($0) }
    }

    func run(_ url: URL, _ configuration: URLSessionConfiguration) async throws -> Int {
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: url)
        if let upload = job.upload {
            request.httpMethod = "PUT"
            request.httpBodyStream = PieceStream(length: upload)
        }
        return try await withCheckedThrowingContinuation { continuation in
            end = continuation
            session.dataTask(with: request).resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        received += data.count
        if job.upload != nil { answer += data }
        if let file { write(data, to: file) }
        guard job.pace > 0 else { return }
        taken += data.count
        while taken >= 64 << 10 {
            taken -= 64 << 10
            Thread.sleep(forTimeInterval: Double(job.pace) / 1000)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(PieceStream(length: job.upload ?? 0))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error {
            end?.resume(throwing: error)
            return
        }
        job.verify(status: (task.response as? HTTPURLResponse)?.statusCode ?? 0, bytes: received)
        if let upload = job.upload, String(decoding: answer, as: UTF8.self) != "\(upload)" {
            die("the server did not get all bytes")
        }
        end?.resume(returning: job.upload ?? received)
    }
}
