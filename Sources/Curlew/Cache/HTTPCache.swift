// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
internal import FoundationEssentials

/// An HTTP cache (RFC 9111) for one or more sessions, which reports why each response was used or not.
///
/// A session has no cache unless you pass one. The cache stores the responses to GET requests while they are read, and
/// answers later requests from them: at once while they are fresh, and after a question to the server (304) when they
/// are stale. Any thread may use a cache. Sessions with the same cache share its responses.
///
/// ```swift
/// let session = Session(cache: HTTPCache())
/// let (_, head) = try await session.data(for: "https://example.com/logo.svg")
/// print(head.cache?.isHit ?? false, head["Cache-Status"] ?? "")
/// ```
///
/// The cache is private, for one user, unless ``Options/isShared`` is set. A response to a request with credentials
/// (``HeaderName/isSensitive``, and the sensitive fields of the session's redirect policy) is used only for requests
/// with the same credentials. The cookies of the session's jar do not count as credentials, not even for `private`
/// responses: only `Vary: Cookie` separates them. Client certificates and trust evaluators do not separate responses
/// either. Use one cache for each user, and call ``removeAll(where:)`` at a logout.
public final class HTTPCache: Sendable {
    /// How a cache works; each member has its default unless set.
    public struct Options: Sendable {
        /// Whether several users share the cache, such as in a proxy (RFC 9111 §1); false unless set.
        public var isShared = false
        /// The names of targeted fields, such as "CDN-Cache-Control", which override `Cache-Control`; empty unless set.
        ///
        /// The first field has precedence (RFC 9213).
        public var targetedFields: [HeaderName] = []
        /// Whether `No-Vary-Search` lets a response answer requests with other queries; false unless set.
        public var usesNoVarySearch = false
        /// Whether stored responses serve as compression dictionaries (RFC 9842) for https requests; false unless set.
        ///
        /// A GET names the best stored response with `Use-As-Dictionary`, and the server may compress the new response
        /// with the stored one. A dictionary has at most 16 MiB. Downloads and requests with `Range` or their own
        /// `Accept-Encoding` do not name one.
        ///
        /// Each GET that can name a dictionary asks the store for the dictionaries of its origin. The cache keeps up to
        /// 16 dictionaries and 32 MiB in memory, in addition to the limit of the store.
        public var usesDictionaries = false
        /// The maximum size of a stored body; nil, the default, for the limit of the store.
        public var maximumBodySize: ByteCount?
        /// The memory pressure at which the cache releases loaded dictionaries; nil to ignore memory pressure.
        ///
        /// ``MemoryPressure/shared`` unless set. The stores of ``HTTPCache/init(_:)`` and
        /// ``HTTPCache/memory(limit:_:)`` watch the same memory pressure; a store that you pass has its own setting.
        public var memoryPressure: MemoryPressure? = .shared
        /// Called for each response to GET, and for each stored response that a server has confirmed; nil unless set.
        ///
        /// A 206 that completes a stored start is not passed to the closure.
        ///
        /// The closure may change the proposal, and returns whether to store it. The rules of HTTP apply to the changed
        /// head: with another `Cache-Control` a response can become cacheable.
        public var willStore: (@Sendable (inout Proposal) async -> Bool)?

        /// Creates the default options.
        public init() {}
    }

    /// A response that the cache is about to store.
    public struct Proposal: Sendable {
        /// The request as it was sent.
        public let request: Request
        /// The head of the response; changes apply to the stored head only.
        public var head: ResponseHead
        /// Tags by which ``HTTPCache/remove(tag:)`` finds the response; empty by default.
        public var tags: Set<String> = []
        /// Transforms the stored body chunk by chunk, as ``IncomingResponse/mapBytes(_:)`` does; nil stores it
        /// unchanged.
        public var mapBytes: (@Sendable (ByteChunk?) async throws -> ByteChunk?)?
    }

    typealias Mapping = @Sendable (ByteChunk?) async throws -> ByteChunk?

    /// The store of the cache.
    public let store: any CacheStore
    let options: Options
    let rules: CacheRules
    private let now: @Sendable () -> Date
    /// The dictionaries in memory.
    let dictionaries = Lock(LoadedDictionaries())
    /// The observation that releases dictionaries when memory is short; unset until the first dictionary is loaded.
    let observation = Once<MemoryPressure.Observation>()
    private let state = Lock(State())

    private struct State {
        /// The number of removals; a response that was requested before its removal is not stored.
        var removals: UInt64 = 0
        /// The number of the latest removal that applies to all URLs.
        var latestGeneralRemoval: UInt64 = 0
        /// The numbers of the latest removals of single URLs.
        var latestRemovals: [String: UInt64] = [:]
        var statistics = Statistics()
        /// The keys whose responses are validated in the background.
        var refreshing: Set<String> = []
    }

    /// Creates a cache with a store of 20 MiB in memory, which keeps less while memory is short.
    ///
    /// - Parameter configure: Changes the default options; called once, before the initializer returns.
    public convenience init(_ configure: (inout Options) -> Void = { _ in }) {
        self.init(Self.options(configure))
    }

    /// Creates a cache with a store.
    ///
    /// - Parameters:
    ///   - store: Keeps the responses.
    ///   - configure: Changes the default options; called once, before the initializer returns.
    public convenience init(store: any CacheStore, _ configure: (inout Options) -> Void = { _ in }) {
        self.init(Self.options(configure), in: store)
    }

    /// Creates a cache in memory, which removes the least recently used responses when it is full.
    ///
    /// A body takes at most an eighth of the limit. While memory is short, the cache keeps less: half of the limit at
    /// `.warning`, nothing at `.critical` (``Options/memoryPressure``).
    ///
    /// ```swift
    /// let session = Session(cache: .memory(limit: .mebibytes(50)))
    /// ```
    ///
    /// - Parameters:
    ///   - limit: The maximum size of all stored responses; 20 MiB unless given.
    ///   - configure: Changes the default options; called once, before the function returns.
    public static func memory(
        limit: ByteCount = .mebibytes(20), _ configure: (inout Options) -> Void = { _ in }
    ) -> HTTPCache {
        HTTPCache(options(configure), limit: limit)
    }

    private static func options(_ configure: (inout Options) -> Void) -> Options {
        var options = Options()
        configure(&options)
        return options
    }

    /// Creates a cache in memory.
    convenience init(_ options: Options, limit: ByteCount = .mebibytes(20)) {
        self.init(options, in: MemoryStore(limit: limit, pressure: options.memoryPressure))
    }

    init(
        _ options: Options, in store: any CacheStore, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.store = store
        self.options = options
        self.now = now
        rules = CacheRules(isShared: options.isShared, targetedFields: options.targetedFields)
    }

    /// The current time.
    var time: Date { now() }

    // MARK: Reading and writing

    /// Calls a function of the store; returns nil and counts a failure if it throws.
    func attempt<Value>(_ body: () async throws -> Value) async -> Value? {
        do { return try await body() } catch {
            if !(error is CancellationError) { count(\.failures) }
            return nil
        }
    }

    /// Returns the stored entries that may match a request.
    func entries(for request: CacheRequest) async -> [Entry] {
        var entries = await attempt { try await store.entries(.key(request.url)) } ?? []
        guard options.usesNoVarySearch else { return entries }
        let others = await attempt { try await store.entries(.key(CacheKey.ofSearch(request.url))) } ?? []
        entries += others.filter { NoVarySearch(of: $0.fields)?.equates($0.url, request.url) ?? false }
        return entries
    }

    /// Removes entries; returns their number.
    @discardableResult
    func remove(_ entries: [Entry]) async -> Int {
        if entries.isEmpty { return 0 }
        defer { forget(entries.map(\.id)) }
        return await attempt { try await store.remove(entries.map(\.id)) } ?? 0
    }

    /// Releases the dictionaries of entries that were removed.
    func forget(_ ids: [Entry.ID]) {
        let released = dictionaries.withLock { $0.remove(ids) }
        withExtendedLifetime(released) {}
    }

    /// The maximum size of a stored body in bytes.
    var maximumBodySize: Int64 {
        options.maximumBodySize.map { min($0.bytes, store.maximumBodySize) } ?? store.maximumBodySize
    }

    /// The number of removals by the program and by requests with unsafe methods.
    var removals: UInt64 { state.withLock { $0.removals } }

    /// The maximum number of URLs in `latestRemovals`; one more makes a removal apply to all URLs.
    private static let maximumRemovals = 1_024

    /// Counts a removal.
    ///
    /// - Parameter url: The URL whose responses are removed; nil for a removal that can be about any URL.
    func countRemoval(of url: String?) {
        state.withLock { state in
            state.removals += 1
            if let url { state.latestRemovals[url] = state.removals }
            guard url == nil || state.latestRemovals.count > Self.maximumRemovals else { return }
            state.latestGeneralRemoval = state.removals
            state.latestRemovals = [:]
        }
    }

    /// Whether a removal since an earlier time applies to a URL.
    ///
    /// - Parameter earlier: The value of `removals` at that time.
    func hasRemoved(_ url: String, after earlier: UInt64) -> Bool {
        state.withLock { max($0.latestGeneralRemoval, $0.latestRemovals[url] ?? 0) > earlier }
    }

    // MARK: Statistics

    /// The number of requests and responses that the cache has handled since its creation.
    public struct Statistics: Sendable, Hashable {
        /// Requests that were answered from the cache without waiting for a server.
        public var hits = 0
        /// Those of the hits whose response was stale.
        public var staleHits = 0
        /// Requests whose stale response replaced an error of the server (`stale-if-error`).
        public var replacedErrors = 0
        /// Requests whose stored response a server confirmed (304).
        public var validations = 0
        /// GET and HEAD requests whose response came from a server, or was the 504 of the cache; bypassed requests do
        /// not count.
        public var misses = 0
        /// Responses that were stored.
        public var stores = 0
        /// The bytes of their bodies.
        public var storedBytes: Int64 = 0
        /// The bytes of bodies that were read from the store.
        public var servedBytes: Int64 = 0
        /// Entries that were removed because a request with an unsafe method invalidated them.
        public var invalidations = 0
        /// Requests that shared the transfer of an equal request.
        public var collapsed = 0
        /// Errors of the store.
        public var failures = 0
    }

    /// The counters of the cache since its creation.
    public var statistics: Statistics { state.withLock { $0.statistics } }

    func count(_ counter: any WritableKeyPath<Statistics, Int> & Sendable) {
        state.withLock { $0.statistics[keyPath: counter] += 1 }
    }

    /// Changes the statistics.
    func record(_ change: (inout Statistics) -> Void) { state.withLock { change(&$0.statistics) } }

    // MARK: Validation in the background

    /// The maximum number of validations in the background at a time.
    private static let maximumRefreshes = 16

    /// Reserves the validation of a key; returns false if it runs already, or if too many run.
    func beginRefresh(_ key: String) -> Bool {
        state.withLock { $0.refreshing.count < Self.maximumRefreshes && $0.refreshing.insert(key).inserted }
    }

    func endRefresh(_ key: String) { state.withLock { _ = $0.refreshing.remove(key) } }
}

extension HTTPCache: CustomStringConvertible, CustomReflectable {
    /// The hits and misses, such as "HTTPCache(12 hits, 3 validations, 40 misses)".
    public var description: String {
        let statistics = statistics
        return "HTTPCache(\(statistics.hits) hits, \(statistics.validations) validations, \(statistics.misses) misses)"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
