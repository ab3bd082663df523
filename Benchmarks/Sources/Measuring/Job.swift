// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The work of the process, as given by its arguments, each `name=value`.
///
/// The type is a class, because many tasks share it.
public final class Job: Sendable {
    /// The URL of all requests.
    public let url: String
    /// The total number of requests.
    public let count: Int
    /// The number of concurrent requests.
    public let concurrency: Int
    /// The length of each response in bytes; nil if it is unknown.
    public let expected: Int?
    /// Whether the client uses HTTP/2.
    public let isHTTP2: Bool
    /// The file with the certificate to trust.
    public let authority: String?
    /// The URL of the proxy for all requests; nil for a client without one.
    public let proxy: String?
    /// The path of the Unix socket for all requests; nil to connect to the host of the URL.
    public let unixSocket: String?
    /// The number of bytes to upload; nil for GET.
    public let upload: Int?
    /// The file to send in a form; nil for other kinds of body.
    public let form: String?
    /// The file to write the response to.
    public let file: String?
    /// The destination of a file download; nil if the client writes the file itself or writes no file.
    public let download: String?
    /// The number of connections that fetch one file.
    public let segments: Int
    /// The pause of a slow consumer for each 64 KiB in milliseconds; 0 for a fast consumer.
    public let pace: Int
    /// Whether the client collects the body in memory instead of reading it in chunks.
    public let collects: Bool
    /// Whether the tasks prefer the client's own executor, if it has one.
    public let prefersExecutor: Bool
    /// Whether the client retries failed requests with the standard policy.
    public let retries: Bool
    /// Whether each request is a transfer, if the library has transfers.
    public let hasTransfers: Bool
    /// The number of cookies for the server, if the library has a cookie jar.
    public let cookies: Int
    /// The number of cookies for another host.
    public let otherCookies: Int
    /// The number of cookies in a field that the client sets by itself.
    public let givenCookies: Int
    /// The cache of the client: "memory", or the path of a directory; nil for a client without a cache.
    public let cache: String?
    /// Whether the cache stores each response instead of answering from those that it has.
    public let reloads: Bool
    /// The file that the client reads instead of sending requests; nil for a client that sends requests.
    public let reads: String?
    /// Whether the client decodes the response as JSON.
    public let isDecoded: Bool
    /// Whether an API client does the work instead of a session, if the library has API clients.
    public let hasClient: Bool
    /// Whether the API client uses Foundation's decoder instead of its own.
    public let usesFoundation: Bool
    /// The number of sessions.
    public let sessions: Int
    /// The maximum number of connections; the concurrency by default.
    public let connections: Int

    /// Parses the arguments; missing arguments get their defaults.
    public init(_ arguments: [String]) {
        var values: [String: String] = [:]
        for argument in arguments {
            let parts = argument.split(separator: "=", maxSplits: 1)
            if parts.count == 2 { values[String(parts[0])] = String(parts[1]) }
        }
        func number(_ name: String) -> Int? { values[name].flatMap { Int($0) } }
        guard let url = values["url"] else { die("usage: url=URL [name=value]…") }
        self.url = url
        count = number("n") ?? 1
        concurrency = number("c") ?? 1
        expected = number("expect")
        isHTTP2 = number("http") == 2
        authority = values["ca"]
        proxy = values["proxy"]
        unixSocket = values["unix"]
        upload = number("upload")
        form = values["form"]
        file = values["file"]
        download = values["download"]
        segments = number("segments") ?? 1
        pace = number("pace") ?? 0
        collects = number("collect") == 1
        prefersExecutor = number("executor") == 1
        retries = number("retry") == 1
        hasTransfers = number("transfer") == 1
        cookies = number("cookies") ?? 0
        otherCookies = number("other") ?? 0
        givenCookies = number("given") ?? 0
        cache = values["cache"]
        reloads = number("reload") == 1
        reads = values["reads"]
        isDecoded = number("json") == 1
        hasClient = number("client") == 1
        usesFoundation = number("foundation") == 1
        sessions = number("sessions") ?? 1
        connections = number("connections") ?? concurrency
    }

    /// Whether the client reads the response in chunks.
    public var isStreamed: Bool { !collects && (file != nil || pace > 0 || (expected ?? 0) > 1 << 20) }

    /// Ends the process if a response is not as expected.
    public func verify(status: Int, bytes: Int) {
        if status != 200 { die("status \(status)") }
        if let expected, bytes != expected { die("\(bytes) bytes, expected \(expected)") }
    }

    /// Returns the number of requests of one concurrent worker.
    public func share(of worker: Int) -> Int { count / concurrency + (worker < count % concurrency ? 1 : 0) }
}
