// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Measuring

extension CurlewBench {
    /// The number of bytes that a slow consumer reads before it pauses.
    static let piece = 64 << 10

    /// Reads a body in chunks and discards them, writes them to a file, or reads them slowly.
    @inline(never)
    static func download(_ request: Request, _ job: Job, _ session: Session) async throws -> Int {
        let file = job.file.map { OutputFile($0) }
        var status = 0
        var (bytes, taken) = (0, 0)
        for try await element in session.transfer(request).stream {
            switch element {
            case .head(let head): status = head.status.code
            case .bytes(let chunk):
                bytes += chunk.count
                if let file { write(chunk, to: file) }
                guard job.pace > 0 else { continue }
                taken += chunk.count
                while taken >= piece {
                    taken -= piece
                    try await Task.sleep(for: .milliseconds(job.pace))
                }
            default: break
            }
        }
        job.verify(status: status, bytes: bytes)
        return bytes
    }

    /// Downloads a file under a temporary name, and renames it when it is verified and on the disk.
    @inline(never)
    static func download(_ request: Request, to path: String, _ job: Job, _ session: Session) async throws -> Int {
        var options = DownloadOptions()
        options.segments = job.segments
        let file = try await session.download(request, to: .file(path), overwrite: .replace, options: options)
        job.verify(status: 200, bytes: Int(file.bytes))
        return Int(file.bytes)
    }

    /// Sends a body in chunks; the server responds with the number of received bytes.
    @inline(never)
    static func upload(_ job: Job, _ session: Session) async throws -> Int {
        let length = job.upload ?? 0
        let body = RequestBody.stream(Pieces(length: length), length: Int64(length))
        let (data, head) = try await session.data(for: Request(.put, job.url, body: body))
        job.verify(status: head.status.code, bytes: data.count)
        guard String(decoding: data, as: UTF8.self) == "\(length)" else { die("the server did not get all bytes") }
        return length
    }
}

extension CurlewBench {
    /// Sends a form with a file; the server responds with the number of received bytes, including the framing.
    @inline(never)
    static func send(_ path: String, _ job: Job, _ session: Session) async throws -> Int {
        let form = MultipartForm {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("file", file: path)
        }
        let request = Request(.put, job.url, fields: form.fields, body: .multipart(form))
        let (data, head) = try await session.data(for: request)
        job.verify(status: head.status.code, bytes: data.count)
        let length = Int(String(decoding: data, as: UTF8.self)) ?? 0
        guard length > job.upload ?? 0 else { die("the server did not get all bytes") }
        return length
    }
}

/// A sequence that repeats the same 64 KiB.
struct Pieces: AsyncSequence, Sendable {
    let length: Int

    struct Iterator: AsyncIteratorProtocol {
        let piece: [UInt8]
        var left: Int

        mutating func next() async -> [UInt8]? {
            guard left > 0 else { return nil }
            defer { left -= piece.count }
            return left >= piece.count ? piece : Array(piece.prefix(left))
        }
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(piece: [UInt8](repeating: 120, count: CurlewBench.piece), left: length)
    }
}
