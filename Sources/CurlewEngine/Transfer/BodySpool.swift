// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Reads a request body to its end instead of sending it, on its own thread: into a file, or for a closure that reads
/// the bytes.
package final class BodySpool: UploadReader, Sendable {
    /// The reason why the body was not read to its end.
    package enum Failure: Error {
        /// The file cannot be created, or it exists already.
        case destination(SourceFailure)
        /// Writing the file failed.
        case writing(SourceFailure)
        /// The body failed with a reason of its own.
        case body(EngineFailure.Reason)
        case cancelled
    }

    /// The destination of the bytes.
    private enum Sink {
        case file(String)
        case observer(@Sendable (UnsafeRawBufferPointer) -> Void)
    }

    private static let piece = 256 << 10

    private let upload: TransferPlan.Upload
    private let sink: Sink
    private let signal = OwnedDescriptor(curlew_eventfd_create())
    private let isCancelled = Lock(false)

    private init(_ upload: TransferPlan.Upload, _ sink: Sink) {
        self.upload = upload
        self.sink = sink
    }

    /// Writes a body to a new file that only its owner may read; after a failure, the file is removed.
    ///
    /// - Throws: `Failure`.
    package static func write(_ upload: TransferPlan.Upload, to path: String) async throws(Failure) {
        try await BodySpool(upload, .file(path)).end()
    }

    /// Passes a body chunk by chunk to a closure; the closure runs on a separate thread and may block.
    ///
    /// - Throws: `Failure`.
    package static func read(
        _ upload: TransferPlan.Upload, by observer: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
    ) async throws(Failure) {
        try await BodySpool(upload, .observer(observer)).end()
    }

    private func end() async throws(Failure) {
        let result: Result<Void, Failure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let code = startThread("curlew-spool") { continuation.resume(returning: self.run()) }
                if code == 0 { return }
                let failure = SourceFailure(what: "no thread to read the body", errno: code)
                continuation.resume(returning: .failure(.destination(failure)))
            }
        } onCancel: {
            cancel()
        }
        try result.get()
    }

    func uploadHasBytes() { eventfd_write(signal.number, 1) }

    private func cancel() {
        isCancelled.withLock { $0 = true }
        uploadHasBytes()
    }

    private func run() -> Result<Void, Failure> {
        do throws(Failure) {
            guard signal.number >= 0 else {
                throw .destination(SourceFailure(what: "no event descriptor", errno: EMFILE))
            }
            switch sink {
            case .observer(let observer): try empty { observer($0) }
            case .file(let path):
                let file = try create(path)
                do throws(Failure) {
                    try empty { bytes throws(Failure) in try write(bytes, to: file, path) }
                } catch {
                    unlink(path)
                    throw error
                }
            }
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func create(_ path: String) throws(Failure) -> OwnedDescriptor {
        guard !path.utf8.contains(0) else {
            throw .destination(SourceFailure(what: "a file's path contains a NUL", errno: 0))
        }
        let number = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw .destination(SourceFailure(what: "cannot create \(path)", errno: errno)) }
        return OwnedDescriptor(number)
    }

    private func empty(into take: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        switch upload {
        case .none: break
        case .bytes(let bytes):
            let taken: Result<Void, Failure> = bytes.withUnsafeBytes { buffer in
                do throws(Failure) { return .success(try take(buffer)) } catch { return .failure(error) }
            }
            try taken.get()
            if isCancelled.withLock({ $0 }) { throw .cancelled }
        case .pipe(let pipe):
            pipe.attach(to: self)
            defer { pipe.close() }
            try empty(pipe, into: take)
        }
    }

    private func empty(
        _ pipe: UploadPipe, into take: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.piece, alignment: 16)
        defer { buffer.deallocate() }
        guard let base = buffer.baseAddress else { return }
        while !isCancelled.withLock({ $0 }) {
            switch pipe.pull(into: base, Self.piece) {
            case .bytes(let count): try take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            case .wait:
                // The counter keeps its value until it is read, so bytes that arrived after `pull` are not missed.
                var value = eventfd_t()
                var waiting = pollfd(fd: signal.number, events: Int16(POLLIN), revents: 0)
                poll(&waiting, 1, -1)
                eventfd_read(signal.number, &value)
            case .end: return
            case .failed(let reason): throw .body(reason)
            }
        }
        throw .cancelled
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, to file: OwnedDescriptor, _ path: String
    ) throws(Failure) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(file.number, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .writing(SourceFailure(what: "cannot write \(path)", errno: errno)) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }
}
