// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewEngine
internal import CurlewSupport

/// A store of decoded images that a loader asks before it uses the network; the methods return without waiting.
///
/// ```swift
/// struct NoCache: ImageCaching {
///     func image(for key: ImageCache.Key) -> DecodedImage? { nil }
///     func add(_ image: DecodedImage, for key: ImageCache.Key) -> Bool { false }
///     func remove(_ key: ImageCache.Key) -> Bool { false }
///     func removeAll() -> Bool { false }
/// }
/// ```
public protocol ImageCaching: Sendable {
    /// Returns an image, and counts this as a use of it.
    func image(for key: ImageCache.Key) -> DecodedImage?

    /// Adds or replaces an image; returns whether the store has it now.
    @discardableResult func add(_ image: DecodedImage, for key: ImageCache.Key) -> Bool

    /// Removes an image; returns whether the store had it.
    @discardableResult func remove(_ key: ImageCache.Key) -> Bool

    /// Removes all images; returns whether the store had any.
    @discardableResult func removeAll() -> Bool
}

/// A cache of decoded images in memory, which removes the least recently used ones when it is full.
///
/// An image costs 4 bytes for each pixel of each frame. Above ``capacity``, images are removed until the rest costs at
/// most ``preferredCost``; the image that was just added stays. An image that costs more than the capacity is not
/// added.
///
/// While memory is short, the cache keeps less: half at `.warning`, nothing at `.critical`. Any thread may use it.
///
/// ```swift
/// let cache = ImageCache(capacity: .mebibytes(200), preferredCost: .mebibytes(120))
/// let loader = ImageLoader(cache: cache)
/// ```
public final class ImageCache: ImageCaching {
    /// The cost above which images are removed.
    public let capacity: ByteCount
    /// The cost that remains at most after images were removed.
    public let preferredCost: ByteCount
    private let pressure: MemoryPressure?
    private let table: Lock<ImageTable<Key, DecodedImage>>
    /// The observation of the pressure, which ends with the cache; unset until the first image is added.
    private let observation = Once<MemoryPressure.Observation>()

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - capacity: The cost above which images are removed; 100 MiB unless given.
    ///   - preferredCost: The cost that remains at most after images were removed; 60 MiB unless given, and never more
    ///     than the capacity.
    ///   - pressure: The memory pressure that the cache watches, from its first image until its release; that of the
    ///     machine and the control group unless given, nil to ignore memory pressure.
    public init(
        capacity: ByteCount = .mebibytes(100), preferredCost: ByteCount = .mebibytes(60),
        pressure: MemoryPressure? = .shared
    ) {
        self.capacity = max(capacity, 0)
        self.preferredCost = min(max(preferredCost, 0), self.capacity)
        self.pressure = pressure
        table = Lock(ImageTable(.init(capacity: self.capacity.bytes, preferred: self.preferredCost.bytes)))
    }

    /// The cost of all images.
    public var cost: ByteCount { .bytes(table.withLock { $0.cost }) }

    /// The number of images.
    public var count: Int { table.withLock { $0.count } }

    /// Returns an image, which becomes the most recently used one; nil without it.
    ///
    /// - Parameter key: The identity of the image.
    public func image(for key: Key) -> DecodedImage? { table.withLock { $0.value(for: key) } }

    /// Adds or replaces an image, and removes the least recently used ones if the cache is full.
    ///
    /// - Parameters:
    ///   - image: The image.
    ///   - key: Its identity.
    /// - Returns: Whether the image was added; false if its cost is above the capacity, or memory is short.
    @discardableResult
    public func add(_ image: DecodedImage, for key: Key) -> Bool {
        let (isAdded, removed) = table.withLock { $0.add(image, cost: image.cost.bytes, for: key) }
        // Pixels are released without the lock.
        withExtendedLifetime(removed) {}
        if let pressure { _ = observation.value { pressure.observe { [weak self] in self?.adapt(to: $0) } } }
        return isAdded
    }

    /// Removes an image.
    ///
    /// - Parameter key: The identity of the image.
    /// - Returns: Whether the cache had it.
    @discardableResult
    public func remove(_ key: Key) -> Bool { table.withLock { $0.remove(key) } != nil }

    /// Removes all images.
    ///
    /// - Returns: Whether the cache had any.
    @discardableResult
    public func removeAll() -> Bool { !table.withLock { $0.removeAll() }.isEmpty }

    /// Releases memory when it is short.
    private func adapt(to level: MemoryPressure.Level) {
        let divisor: Int64? =
            switch level {
            case .normal: 1
            case .warning: 2
            case .critical: nil
            }
        let limits = ImageTable<Key, DecodedImage>.Limits(
            capacity: divisor.map { capacity.bytes / $0 } ?? 0, preferred: divisor.map { preferredCost.bytes / $0 } ?? 0
        )
        let removed = table.withLock { $0.adapt(to: limits) }
        if !removed.isEmpty { HeapTrimmer.shared.request() }
    }
}
