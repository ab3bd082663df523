// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Downloads is responses that become files: where they go, how they are checked, and how they go on after whatever broke
// them off. A download is an interceptor around everything else, which asks as often as it takes.

/// A file that was downloaded, as a whole and checked.
public struct DownloadedFile: Sendable, Hashable {
    /// The absolute path of the file.
    public let path: String
    /// How many bytes it has.
    public let bytes: Int64
    /// The head of the response that ended it.
    ///
    /// Where the download went on with a part that is of status 206, with the length of the rest, and 416 where all the bytes
    /// were there already.
    public let response: ResponseHead
    /// The digest that was checked, or asked for; nil when there was none.
    public let checksum: Checksum?
    /// How many bytes were there in one piece from the start before this download began; 0 for one that began at the start.
    public let resumedFrom: Int64
}

/// How a download is done, beside where it goes.
///
/// ```swift
/// var options = DownloadOptions()
/// options.createsDirectories = true
/// ```
public struct DownloadOptions: Sendable, Hashable {
    /// Whether missing directories are made; false unless set.
    public var createsDirectories = false
    /// Whether the file is on the disk for certain when the download is over, and what was received after every 64 MiB;
    /// true unless set.
    ///
    /// Without it a machine that loses power may lose, or spoil, what was finished a moment before.
    public var isSynced = true
    /// How long a paused download keeps its connection; after that it goes on over another one.
    ///
    /// 30 s unless set. One that cannot be gone on with (a server without ranges or validators) keeps it in any case.
    public var pauseGrace: Duration = .seconds(30)
    /// Whether a part that is there is gone on with; true unless set, else the download begins at the start.
    public var resumes = true
    /// Whether another state of the resource than that of the part makes the download fail with `.contentChanged`; false
    /// unless set: it begins again at the start.
    public var failsWhenChanged = false
    /// How many connections, or streams of HTTP/2, fetch one file at once; 1 unless set, 32 at most.
    ///
    /// Where a server gives each connection only so much, several get more. It takes a server that knows ranges and a strong
    /// validator, and a file of some MiB; else, and for a request with a `bandwidth` of its own, there is one. A server that
    /// refuses further connections is left with those that it takes.
    public var segments = 1
    /// What lets only so many downloads run at once; nil unless set: each begins at once.
    ///
    /// The time in the queue counts for ``Timeouts/total``.
    public var queue: DownloadQueue?
    /// A digest to compute although nobody expects one, for ``DownloadedFile/checksum``; nil unless set.
    public var digest: Checksum.Algorithm?

    /// The smallest piece that is asked for by itself.
    var smallestPiece: Int64 = 1 << 20

    /// Options with their defaults.
    public init() {}

    private static let longestGrace = Duration.seconds(365 * 86_400)

    /// How long a connection is kept, within what a clock can be asked to wait.
    var boundedGrace: Duration { Self.bounded(pauseGrace) }

    static func bounded(_ grace: Duration) -> Duration { min(max(grace, .zero), longestGrace) }
}
