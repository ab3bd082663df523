// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

extension ImageLoader {
    /// The order in which queued requests of the same priority start.
    public enum Order: Sendable, Hashable {
        /// The oldest request first.
        case fifo
        /// The newest request first, as for a list that scrolls.
        case lifo
    }

    /// The settings of a loader.
    ///
    /// ```swift
    /// let loader = ImageLoader { $0.order = .lifo }
    /// ```
    public struct Configuration: Sendable {
        /// The maximum number of images that load at the same time; 4 unless set, at least 1.
        public var maximumActive = 4
        /// The order of queued requests of the same priority; oldest first unless set.
        public var order = Order.fifo
        /// The minimum time between two previews of an image; half a second unless set.
        public var previewInterval = Duration.milliseconds(500)
        /// The maximum memory for the received parts of images that failed or were cancelled, from which a later
        /// request for the same image resumes; 32 MiB unless set, 0 to keep no parts.
        public var resumableMemory = ByteCount.mebibytes(32)
        /// Whether `data:` and `file:` URLs are loaded; false unless set, because a URL from outside could then name
        /// any file of this machine.
        public var allowsLocalURLs = false
        /// Decides whether a loaded image is added to the cache; true unless set.
        ///
        /// Called by the loader for one image after the other; it must return quickly.
        public var shouldCache: @Sendable (DecodedImage, Request) -> Bool = { _, _ in true }

        /// Creates the default settings.
        public init() {}
    }

    /// A change of loaded images, such as a filter, whose results have cache entries of their own.
    ///
    /// ```swift
    /// let small = ImageLoader.Processor("small") { try await $0.scaled(toFit: 64, 64) }
    /// ```
    public struct Processor: Sendable {
        /// The name, by which the cache and requests that share a transfer distinguish processors.
        public let name: String
        let process: @Sendable (DecodedImage) async throws -> DecodedImage

        /// Creates a processor.
        ///
        /// - Parameters:
        ///   - name: The name; different changes need different names.
        ///   - process: Returns the changed image. Called once for each transfer, in a task of the loader. An error
        ///     other than a `NetworkError` becomes the cause of one of kind `.decodingFailed`, a
        ///     `CancellationError` one of kind `.cancelled`.
        public init(_ name: String, _ process: @escaping @Sendable (DecodedImage) async throws -> DecodedImage) {
            (self.name, self.process) = (name, process)
        }
    }

    /// A loaded image, and where it came from.
    public struct Loaded: Sendable {
        /// The origin of an image.
        public enum Source: Sendable, Hashable {
            /// The loader's cache.
            case memory
            /// The HTTP cache of the session, without a request to the server.
            case cache
            /// A server; also after the validation of a cached response.
            case network
            /// A `data:` or `file:` URL.
            case local
        }

        /// The image.
        public let image: DecodedImage
        /// Where the image came from.
        public let source: Source
        /// The head of the response; nil for an image from memory and for a local one.
        public let head: ResponseHead?
    }
}
