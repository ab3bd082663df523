// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Everything a session can be told when it is made, in groups, each with its defaults.
///
/// `SessionConfiguration()` is right for most programs. It can be read from JSON or a property list: missing keys take
/// their defaults, nonsense is refused, and sensitive fields (``HeaderName/isSensitive``) are never written.
///
/// ```swift
/// let session = Session(SessionConfiguration { $0.timeouts.connect = .seconds(3) })
/// ```
public struct SessionConfiguration: Sendable, Hashable {
    /// How long transfers may take; a request can bring its own.
    public var timeouts: Timeouts
    /// How many connections and transfers there may be, and how large responses.
    public var limits: Limits
    /// How TLS is spoken, and what is demanded of it.
    public var tls: TLS
    /// How TCP connections are made and watched.
    public var tcp: TCP
    /// Fields sent with every request that does not set them: `User-Agent` and `Accept` unless changed.
    public var fields: HeaderFields
    /// Which protocol versions are spoken, and whether bodies are compressed.
    public var http: HTTP
    /// How much data is buffered for a transfer.
    public var buffers: Buffers
    /// Which redirects are followed; up to 20 to wherever they lead, unless set.
    public var redirects: RedirectPolicy
    /// Which requests are sent again; none that a server may have acted on, unless set.
    public var retry: RetryPolicy

    /// The default configuration.
    public init() {
        timeouts = Timeouts()
        limits = Limits()
        tls = TLS()
        tcp = TCP()
        fields = Self.standardFields
        http = HTTP()
        buffers = Buffers()
        redirects = .follow()
        retry = .none
    }

    /// The default configuration, changed by a closure.
    /// - Throws: What `configure` throws.
    public init(_ configure: (inout SessionConfiguration) throws -> Void) rethrows {
        self.init()
        try configure(&self)
    }

    /// The default configuration.
    public static let `default` = SessionConfiguration()

    private static let standardFields: HeaderFields = [.userAgent: UserAgent.standard, .accept: "*/*"]
}
