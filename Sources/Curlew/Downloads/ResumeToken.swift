// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A token that resumes an interrupted download: its URL, the validator of the resource, and how much is stored.
///
/// The error of a failed download has a token (``NetworkError/resumeToken``), and `cancel(producingResumeToken:)`
/// returns one. A token can be stored and used by another process as long as the part file exists. The same JSON is in
/// a note beside each part file, `….part.json`, so repeating the same download resumes it without a token.
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
    /// The URL of the request; it may hold secrets, which `description` leaves out.
    public let url: String
    /// The validator of the resource when the part file was written.
    public let validator: ResumeToken.Validator
    /// The number of bytes at the start of the part file.
    public internal(set) var offset: Int64
    /// The size of the whole file in bytes; nil when the server did not state it.
    public internal(set) var total: Int64?
    /// The path of the part file.
    public let part: String
    /// The path of the complete file.
    public let destination: String
    /// The policy for an existing file of the same name.
    public let overwrite: DownloadDestination.Overwrite
    /// The expected digest of the whole file; nil when it is unknown.
    public internal(set) var checksum: Checksum?
    /// The digest of the part file, if one was computed; it shows whether the part file was changed since.
    public internal(set) var digest: Checksum?
    /// The boot id of the machine when the part file was written, and how many bytes were synced to the disk.
    var bootID = ""
    var synced: Int64 = 0
    /// The byte ranges behind `offset` that several connections have fetched; nil when there is only a beginning.
    var pieces: [Range<Int64>]?
    /// The subset of `pieces` that was synced to the disk.
    var syncedPieces: [Range<Int64>]?

    init(
        url: String, validator: ResumeToken.Validator, offset: Int64, total: Int64?, part: String, destination: String,
        overwrite: DownloadDestination.Overwrite, checksum: Checksum?
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
    /// A line of text, without user-info and query of the URL.
    public var description: String {
        let whole = total.map { " of \(ByteCount($0))" } ?? ""
        return "\(ByteCount(offset))\(whole) of \(redactedURL(url)) in \(part)"
    }

    /// A mirror whose only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension DownloadDestination {
    /// The policy for an existing file that has the name of a downloaded one.
    public enum Overwrite: String, Sendable, Hashable, Codable, CaseIterable {
        /// The download fails; if the name is known in advance, it fails before a request is sent.
        case fail
        /// The new file replaces the existing one atomically.
        case replace
        /// The new file gets another name, with a number: "a (2).zip".
        case uniquify
    }
}
