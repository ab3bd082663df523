// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Reads a request body chunk by chunk from a task, instead of sending it.
///
/// The producers of the body read their sources, and the disk thread reads files: a task that waits for a chunk blocks
/// no thread. Only one task may read.
package final class BodyTap: UploadReader, Sendable {
    /// The reason why there is no next chunk.
    package enum Failure: Error {
        case body(EngineFailure.Reason)
        case cancelled
    }

    private struct State {
        /// The number of bytes that were returned.
        var offset = 0
        /// Whether the pipe has reported new bytes since the last `pull`.
        var isReady = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let upload: TransferPlan.Upload
    private let state = Lock(State())

    package init(_ upload: TransferPlan.Upload) {
        self.upload = upload
        if case .pipe(let pipe) = upload { pipe.attach(to: self) }
    }

    deinit { if case .pipe(let pipe) = upload { pipe.close() } }

    /// Returns the next chunk, of at most 64 KiB; nil at the end.
    ///
    /// - Throws: `Failure`.
    package func next() async throws(Failure) -> [UInt8]? {
        if Task.isCancelled { throw .cancelled }
        switch upload {
        case .none: return nil
        case .bytes(let bytes):
            let range = state.withLock { state in
                let start = state.offset
                state.offset = min(bytes.count, start + UploadPipe.piece)
                return start..<state.offset
            }
            return range.isEmpty ? nil : Array(bytes[range])
        case .pipe(let pipe): return try await next(of: pipe)
        }
    }

    private func next(of pipe: UploadPipe) async throws(Failure) -> [UInt8]? {
        while true {
            var pulled = UploadPipe.Pulled.end
            let bytes = [UInt8](unsafeUninitializedCapacity: UploadPipe.piece) { buffer, count in
                guard let base = buffer.baseAddress else { return }
                pulled = pipe.pull(into: base, UploadPipe.piece)
                if case .bytes(let number) = pulled { count = number }
            }
            switch pulled {
            case .bytes: return bytes
            case .end: return nil
            case .failed(let reason): throw .body(reason)
            case .wait: await becomeReady()
            }
            if Task.isCancelled { throw .cancelled }
        }
    }

    private func becomeReady() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    defer { state.isReady = false }
                    if !state.isReady { state.waiting = continuation }
                    return state.isReady
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            uploadHasBytes()
        }
    }

    func uploadHasBytes() {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            if state.waiting == nil { state.isReady = true }
            return state.waiting
        }
        waiting?.resume()
    }
}

extension TransferPlan.Upload {
    /// The number of bytes of the body, if known.
    package var declaredLength: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .pipe(let pipe): pipe.declared
        }
    }
}
