// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What the process is told to do by its arguments, each `name=value`.
///
/// An object, since it is handed from task to task.
public final class Job: Sendable {
    /// What is fetched, or sent to.
    public let url: String
    /// How many requests there are in all.
    public let count: Int
    /// How many of them are on their way at a time.
    public let concurrency: Int
    /// How many bytes each answer has; nil when that is not known.
    public let expected: Int?
    /// Whether HTTP/2 is spoken.
    public let isHTTP2: Bool
    /// The file with the certificate to trust.
    public let authority: String?
    /// How many bytes are sent; nil for GET.
    public let upload: Int?
    /// The file that is sent in a form; nil for another kind of body.
    public let form: String?
    /// The file to write the answer to.
    public let file: String?
    /// The file to download to; nil to write it by hand, or not at all.
    public let download: String?
    /// How many connections fetch one file.
    public let segments: Int
    /// How many milliseconds a slow consumer takes for 64 KiB; 0 for one that is not slow.
    public let pace: Int
    /// Whether the body is collected in memory rather than read in pieces.
    public let collects: Bool
    /// Whether the tasks prefer the client's own executor, where it has one.
    public let prefersExecutor: Bool
    /// Whether requests that fail are sent again, by the standard policy.
    public let retries: Bool
    /// Whether the answer is JSON that is decoded.
    public let isDecoded: Bool
    /// Whether an API client does the work rather than a session, where there is one.
    public let hasClient: Bool
    /// Whether that client decodes by Foundation's decoder rather than by its own.
    public let usesFoundation: Bool
    /// How many clients share the work.
    public let sessions: Int
    /// How many connections there may be; the concurrency unless given.
    public let connections: Int

    /// Reads arguments; one that is missing takes its default.
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
        upload = number("upload")
        form = values["form"]
        file = values["file"]
        download = values["download"]
        segments = number("segments") ?? 1
        pace = number("pace") ?? 0
        collects = number("collect") == 1
        prefersExecutor = number("executor") == 1
        retries = number("retry") == 1
        isDecoded = number("json") == 1
        hasClient = number("client") == 1
        usesFoundation = number("foundation") == 1
        sessions = number("sessions") ?? 1
        connections = number("connections") ?? concurrency
    }

    /// Whether the answer is large enough to be read in pieces.
    public var isStreamed: Bool { !collects && (file != nil || pace > 0 || (expected ?? 0) > 1 << 20) }

    /// Ends the process when an answer is not what it has to be.
    public func verify(status: Int, bytes: Int) {
        if status != 200 { die("status \(status)") }
        if let expected, bytes != expected { die("\(bytes) bytes, expected \(expected)") }
    }

    /// How many requests one of the concurrent workers makes.
    public func share(of worker: Int) -> Int { count / concurrency + (worker < count % concurrency ? 1 : 0) }
}
