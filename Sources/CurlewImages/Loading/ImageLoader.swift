// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// Loads images: a few at a time, each only once, through a cache of decoded images.
///
/// ```swift
/// let loader = ImageLoader()
/// let avatar = try await loader.image("https://example.com/avatar.png").image
/// let thumbnail = try await loader.image(
///     "https://example.com/photo.jpg", options: .fitting(width: 320, height: 320)
/// ).image
/// ```
///
/// - At most `maximumActive` images load at the same time; the others wait in the order of their priorities, then first
///   in, first out, or last in, first out.
/// - Requests that are equal in URL, header fields, options, decoding and processor share one transfer, which ends
///   early only when all of them were cancelled.
/// - The cache is asked under the cache policies `.standard`, `.preferCache` and `.onlyIfCached`. The HTTP cache of the
///   session, if there is one, is asked as for any request.
/// - The received part of a failed or cancelled transfer stays in memory, up to `resumableMemory`. If the server has
///   sent a strong validator and a length, the next equal request asks only for the rest.
public actor ImageLoader {
    /// A loader on the shared session, with a cache of its own.
    public static let shared = ImageLoader()

    /// The session that sends the requests.
    public nonisolated let session: Session
    /// The cache of decoded images; nil without one.
    public nonisolated let cache: (any ImageCaching)?
    /// The settings.
    public nonisolated let configuration: Configuration

    /// The identity of a transfer that requests may share.
    struct SharedKey: Hashable {
        let request: CoalescingKey
        let options: DecodedImage.Options
        let processor: String?
    }

    private let parts: PartialImages
    private var queue: LoadQueue<SharedKey>
    private var jobs: [UInt64: ImageJob] = [:]
    private var running: [UInt64: Task<Void, Never>] = [:]

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - configuration: The settings.
    ///   - session: The session that sends the requests; the shared one unless given.
    ///   - cache: The cache of decoded images; one of 100 MiB unless given, nil for no cache.
    public init(
        _ configuration: Configuration = Configuration(), session: Session = .shared,
        cache: (any ImageCaching)? = ImageCache()
    ) {
        self.session = session
        self.cache = cache
        self.configuration = configuration
        parts = PartialImages(limit: configuration.resumableMemory)
        queue = LoadQueue(maximum: configuration.maximumActive, order: configuration.order)
    }

    /// Creates a loader whose settings a closure changes.
    ///
    /// - Parameters:
    ///   - session: The session that sends the requests; the shared one unless given.
    ///   - cache: The cache of decoded images; one of 100 MiB unless given, nil for no cache.
    ///   - configure: Changes the default settings.
    public init(
        session: Session = .shared, cache: (any ImageCaching)? = ImageCache(),
        _ configure: (inout Configuration) -> Void
    ) {
        var configuration = Configuration()
        configure(&configuration)
        self.init(configuration, session: session, cache: cache)
    }

    // MARK: Loading

    /// Loads an image.
    ///
    /// The cancellation of the calling task cancels the request.
    /// - Parameters:
    ///   - request: The request, or a URL as a string literal; other methods than GET are never shared or cached.
    ///   - options: The size, the frames and the limits.
    ///   - priority: The priority; that of the request's options unless given.
    ///   - processor: A change of the image; nil for no change.
    /// - Returns: The image, and where it came from.
    /// - Throws: `NetworkError`: an error of the transfer, `.invalidRequest` for an invalid URL, or `.decodingFailed`
    ///   with an ``ImageError`` as its cause.
    public nonisolated func image(
        _ request: Request, options: DecodedImage.Options = DecodedImage.Options(),
        priority: Request.Priority? = nil, processor: Processor? = nil
    ) async throws(NetworkError) -> Loaded {
        try await load(request, options: options, priority: priority, processor: processor).value
    }

    /// Starts to load an image, or queues it.
    ///
    /// - Parameters:
    ///   - request: The request, or a URL as a string literal; other methods than GET are never shared or cached.
    ///   - options: The size, the frames and the limits.
    ///   - priority: The priority; that of the request's options unless given.
    ///   - processor: A change of the image; nil for no change.
    /// - Returns: The receipt of the request, which ends it when it is released. It is finished if the cache has the
    ///   image.
    public func load(
        _ request: Request, options: DecodedImage.Options = DecodedImage.Options(),
        priority: Request.Priority? = nil, processor: Processor? = nil
    ) -> Load {
        let core = Load.Core()
        let key = ImageCache.Key(request, variant: processor?.name, options: options)
        let sharable = request.sharedKey
        if sharable != nil, request.mayUseImageCache, let image = cache?.image(for: key) {
            _ = core.end(.success(Loaded(image: image, source: .memory, head: nil)))
            return Load(queue.nextNumber(), request, core, self)
        }
        let shared = sharable.map {
            SharedKey(request: $0, options: options, processor: processor?.name)
        }
        let (waiter, number, isNew) = queue.add(shared, priority ?? request.options.priority)
        if isNew { jobs[number] = ImageJob(request, options, processor, key, shared) }
        jobs[number]?.add(core, waiter)
        perform(queue.next())
        return Load(waiter, request, core, self)
    }

    /// Ends a request with an error, unless it has ended.
    nonisolated func cancel(_ waiter: UInt64, _ core: Load.Core) {
        let error = NetworkError(.cancelled, phase: .preparing, "The request for the image was cancelled.")
        guard core.end(.failure(error)) else { return }
        Task { await leave(waiter) }
    }

    func change(_ waiter: UInt64, to priority: Request.Priority) { queue.change(waiter, to: priority) }

    private func leave(_ waiter: UInt64) {
        guard let job = queue.job(of: waiter) else { return }
        jobs[job]?.remove(waiter)
        perform(queue.leave(waiter))
        if !queue.contains(job) { jobs[job] = nil }
    }

    // MARK: Jobs

    private func perform(_ actions: [LoadQueue<SharedKey>.Action]) {
        for action in actions {
            switch action {
            case .start(let number):
                guard let job = jobs[number] else { continue }
                running[number] = Task {
                    let result = await job.run(session, parts, configuration)
                    end(number, job, result)
                }
            case .cancel(let number): running[number]?.cancel()
            }
        }
    }

    private func end(_ number: UInt64, _ job: ImageJob, _ result: Result<Loaded, NetworkError>) {
        running[number] = nil
        jobs[number] = nil
        queue.end(number)
        if case .success(let loaded) = result, job.isSharable, loaded.source != .local,
            configuration.shouldCache(loaded.image, job.request)
        {
            cache?.add(loaded.image, for: job.key)
        }
        job.end(result)
        perform(queue.next())
    }

    // MARK: State

    /// The number of images that load at present.
    public var active: Int { queue.active }

    /// The number of images that wait for others.
    public var queued: Int { queue.queued }
}

extension Request {
    /// Whether the policy permits an image from the cache (IM-05).
    fileprivate var mayUseImageCache: Bool {
        switch options.cache ?? .standard {
        case .standard, .preferCache, .onlyIfCached: true
        case .reload, .reloadFromOrigin, .revalidate: false
        }
    }

    /// The key of the transfer that equal requests share; nil for a request with a transfer of its own.
    fileprivate var sharedKey: CoalescingKey? {
        method == .get && body.isNone ? CoalescingKey(self, interceptorsOf: nil) : nil
    }
}
