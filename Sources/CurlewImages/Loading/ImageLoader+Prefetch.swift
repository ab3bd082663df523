// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

extension ImageLoader {
    /// Loads images into the cache in advance, with low priority.
    ///
    /// A later request for one of the images shares its transfer and raises its priority.
    ///
    /// ```swift
    /// let prefetch = await loader.prefetch(["https://example.com/1.jpg", "https://example.com/2.jpg"])
    /// print(await prefetch.loaded())  // 2
    /// ```
    ///
    /// - Parameters:
    ///   - requests: The requests, in the order in which they are queued.
    ///   - options: The size, the frames and the limits.
    ///   - priority: The priority; low unless given.
    ///   - processor: A change of the images; nil for no change.
    /// - Returns: The prefetch; its release cancels the images that have not been loaded.
    public func prefetch(
        _ requests: some Sequence<Request>, options: DecodedImage.Options = DecodedImage.Options(),
        priority: Request.Priority = .low, processor: Processor? = nil
    ) -> Prefetch {
        Prefetch(requests.map { load($0, options: options, priority: priority, processor: processor) })
    }

    /// Images that are loaded in advance.
    public final class Prefetch: Sendable {
        /// Each task keeps its request, and releases it with the image when it has ended.
        private let tasks: [Task<Bool, Never>]

        init(_ loads: [Load]) { tasks = loads.map { load in Task { (try? await load.value) != nil } } }

        deinit { cancel() }

        /// Waits for all images.
        ///
        /// The cancellation of the waiting task cancels the prefetch.
        /// - Returns: The number of images that were loaded or in the cache; the others failed or were cancelled.
        public func loaded() async -> Int {
            await withTaskCancellationHandler {
                var count = 0
                for task in tasks where await task.value { count += 1 }
                return count
            } onCancel: {
                cancel()
            }
        }

        /// Cancels the images that have not been loaded.
        public func cancel() { for task in tasks { task.cancel() } }
    }
}
