// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

extension ImageLoader {
    /// One request for an image, the receipt of ``ImageLoader/load(_:options:priority:processor:)``.
    ///
    /// Requests for the same image share a transfer; cancelling one of them leaves the others running. Releasing the
    /// last reference cancels an unfinished request.
    public final class Load: Sendable, Identifiable {
        /// The number of the request, unique in its loader.
        public let id: UInt64
        /// The request.
        public let request: Request
        let core: Core
        private let loader: ImageLoader

        init(_ id: UInt64, _ request: Request, _ core: Core, _ loader: ImageLoader) {
            (self.id, self.request, self.core, self.loader) = (id, request, core, loader)
        }

        deinit { loader.cancel(id, core) }

        /// The loaded image; waits for it.
        ///
        /// Any number of tasks may wait. The cancellation of a waiting task cancels the request.
        /// - Throws: `NetworkError`: the error of the transfer, `.decodingFailed` with an ``ImageError`` as its cause,
        ///   or `.cancelled`.
        public var value: Loaded {
            get async throws(NetworkError) {
                while true {
                    let seen = core.ended.count
                    if let result = core.result { return try result.get() }
                    if await !core.ended.wait(after: seen) { cancel() }
                }
            }
        }

        /// The decoded part of the image, at most once in each `previewInterval`, while it arrives.
        ///
        /// A slow reader receives the newest preview. The sequence ends with the request. An image that arrives
        /// within one interval, or comes from the loader's cache, has no previews. A progressive JPEG is coarse at
        /// first; other images are filled from the top.
        public var previews: AsyncStream<DecodedImage> { core.previews() }

        /// Whether the request has ended.
        public var isFinished: Bool { core.result != nil }

        /// Changes the priority, which has an effect until the transfer starts.
        ///
        /// - Parameter priority: The new priority; a shared transfer has the highest one of its requests.
        public func changePriority(to priority: Request.Priority) async { await loader.change(id, to: priority) }

        /// Ends the request with an error of kind `.cancelled`, unless it has ended.
        ///
        /// The transfer ends if no other request shares it.
        public func cancel() { loader.cancel(id, core) }
    }
}

extension ImageLoader.Load {
    /// The state that a request shares with its loader.
    final class Core: Sendable {
        private struct State {
            var result: Result<ImageLoader.Loaded, NetworkError>?
            var readers: [UInt64: AsyncStream<DecodedImage>.Continuation] = [:]
            var lastReader: UInt64 = 0
        }

        private let state = Lock(State())
        /// Sent when there is a result.
        let ended = Signal()

        var result: Result<ImageLoader.Loaded, NetworkError>? { state.withLock { $0.result } }

        /// Whether previews have a reader.
        var wantsPreviews: Bool { state.withLock { !$0.readers.isEmpty } }

        /// Ends the request; returns false if it has ended already.
        func end(_ result: Result<ImageLoader.Loaded, NetworkError>) -> Bool {
            let readers = state.withLock { state -> [AsyncStream<DecodedImage>.Continuation]? in
                if state.result != nil { return nil }
                state.result = result
                defer { state.readers = [:] }
                return Array(state.readers.values)
            }
            guard let readers else { return false }
            ended.send()
            for reader in readers { reader.finish() }
            return true
        }

        func show(_ preview: DecodedImage) {
            for reader in state.withLock({ Array($0.readers.values) }) { reader.yield(preview) }
        }

        func previews() -> AsyncStream<DecodedImage> {
            let (stream, reader) = AsyncStream.makeStream(
                of: DecodedImage.self, bufferingPolicy: .bufferingNewest(1))
            let number = state.withLock { state -> UInt64? in
                if state.result != nil { return nil }
                state.lastReader += 1
                state.readers[state.lastReader] = reader
                return state.lastReader
            }
            guard let number else {
                reader.finish()
                return stream
            }
            reader.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
            }
            return stream
        }
    }
}
