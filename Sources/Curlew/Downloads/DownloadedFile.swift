// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Downloads writes responses to files: it chooses the path, checks the content, and resumes after interruptions. A
// download is the outermost interceptor of its request, and sends requests until the file is complete.

/// A downloaded file, complete and checked.
public struct DownloadedFile: Sendable, Hashable {
    /// The absolute path of the file.
    public let path: String
    /// The size of the file in bytes.
    public let bytes: Int64
    /// The head of the last response.
    ///
    /// A resumed download has a response with status 206 and the length of the rest, or with status 416 when all bytes
    /// were stored already.
    public let response: ResponseHead
    /// The digest of the file, if one was checked or requested.
    public let checksum: Checksum?
    /// The number of bytes, counted from the start of the file, that were stored before this download began; 0 when
    /// it started at the first byte.
    public let resumedFrom: Int64
}

/// Options of a download.
///
/// ```swift
/// var options = DownloadOptions()
/// options.createsDirectories = true
/// ```
public struct DownloadOptions: Sendable, Hashable {
    /// Whether missing directories are created; false by default.
    public var createsDirectories = false
    /// Whether the file is synced to the disk after every 64 MiB and before the download finishes; true by default.
    ///
    /// Without a sync, a power failure may delete or damage a file that was finished a moment before.
    public var isSynced = true
    /// The time for which a paused download keeps its connection; after that, the download closes the connection and
    /// continues over another one.
    ///
    /// The default is 30 s. A download that cannot be resumed, because the server supports no ranges or sends no
    /// validator, always keeps its connection.
    public var pauseGrace: Duration = .seconds(30)
    /// Whether the download resumes from an existing part file; true by default, otherwise it starts at the first byte.
    public var resumes = true
    /// Whether the download fails with `.contentChanged` when the resource has changed since the part file was written;
    /// false by default: the download restarts at the first byte.
    public var failsWhenChanged = false
    /// How many connections, or HTTP/2 streams, fetch one file at once; 1 by default, 32 at most.
    ///
    /// Several connections are faster when the server limits the rate of each one. They require a server with range
    /// support and a strong validator, and a file of a few MiB; otherwise, and for a request with its own `bandwidth`,
    /// the download uses one connection. When the server refuses further connections, the download uses the accepted
    /// ones.
    public var segments = 1
    /// The queue that limits how many downloads run at once; nil by default: each download starts at once.
    ///
    /// The time in the queue counts towards ``Timeouts/total``.
    public var queue: DownloadOptions.Queue?
    /// A digest to compute for ``DownloadedFile/checksum`` even if no digest is expected; nil by default.
    public var digest: Checksum.Algorithm?

    /// The minimum size in bytes of a chunk that is requested separately.
    var minimumChunk: Int64 = 1 << 20

    /// Creates options with their default values.
    public init() {}

    private static let longestGrace = Duration.seconds(365 * 86_400)

    /// `pauseGrace`, clamped to a range that a clock can wait for.
    var boundedGrace: Duration { Self.bounded(pauseGrace) }

    static func bounded(_ grace: Duration) -> Duration { min(max(grace, .zero), longestGrace) }
}
