// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What it takes to go on with a download that did not end: where it comes from, which state of it, and how much there is.
///
/// A failed download's error has one (``NetworkError/resumeToken``), and `cancel(producingResumeToken:)` gives one. It can be
/// stored and used by another process, as long as the part file is there. The same text stands beside each part file, as
/// `….part.json`, so a download that is asked for again goes on without a token, too.
///
/// ```swift
/// let token = await download.cancel(producingResumeToken: true)
/// if let token { try JSONEncoder().encode(token).write(to: url) }
/// // …
/// if let token {
///     let file = try await session.resume(from: token).value
///     print(file)
/// }
/// ```
public struct ResumeToken: Sendable, Hashable, Codable {
    /// What was asked for; it may hold secrets, which `description` leaves out.
    public let url: String
    /// Which state of the resource the part is of.
    public let validator: EntityValidator
    /// How many bytes the part has.
    public internal(set) var offset: Int64
    /// How many bytes the whole has; nil when the server did not say.
    public internal(set) var total: Int64?
    /// The path of the part file.
    public let part: String
    /// The path that the whole will have.
    public let destination: String
    /// What becomes of a file that is there already.
    public let overwrite: DownloadOverwrite
    /// The digest that the whole should have; nil when nobody knows.
    public internal(set) var checksum: Checksum?
    /// The digest of the part, where one was kept: it shows whether the part was changed since.
    public internal(set) var digest: Checksum?
    /// The start of the machine in which the part was written, and how much of it was on the disk for certain.
    var bootID = ""
    var synced: Int64 = 0
    /// What there is behind the offset, where several connections fetched at once; nil where all there is, is a beginning.
    var pieces: [Range<Int64>]?
    /// What of that was on the disk for certain.
    var syncedPieces: [Range<Int64>]?

    init(
        url: String, validator: EntityValidator, offset: Int64, total: Int64?, part: String, destination: String,
        overwrite: DownloadOverwrite, checksum: Checksum?
    ) {
        self.url = url
        self.validator = validator
        self.offset = offset
        self.total = total
        self.part = part
        self.destination = destination
        self.overwrite = overwrite
        self.checksum = checksum
    }
}

extension ResumeToken: CustomStringConvertible, CustomReflectable {
    /// One line, without user-info and query of the URL.
    public var description: String {
        let whole = total.map { " of \(ByteCount($0))" } ?? ""
        return "\(ByteCount(offset))\(whole) of \(redactedURL(url)) in \(part)"
    }

    /// The line alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// What becomes of a file that has the name of a downloaded one.
public enum DownloadOverwrite: String, Sendable, Hashable, Codable, CaseIterable {
    /// The download fails, before anything is asked for where the name is known by then.
    case fail
    /// The new one takes its place, at once and as a whole.
    case replace
    /// The new one gets another name, with a number: "a (2).zip".
    case uniquify
}
