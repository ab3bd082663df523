// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// A download as a store remembers it: what is asked for, where it goes, and how far it has come.
///
/// Fields that are known to carry credentials (``HeaderName/isSensitive``), and those that the program names, are not written;
/// ``withheldFields`` names them. The URL is, with all that is in it.
public struct StoredDownload: Sendable, Hashable, Identifiable {
    /// Where a stored download stands.
    public enum State: String, Sendable, Hashable, Codable, CaseIterable {
        /// It was not begun, or waits to be gone on with.
        case waiting
        /// It was begun.
        case running
        /// Its file has its name.
        case finished
        /// It has failed.
        case failed
    }

    /// A file that is about to get its name.
    struct Placing: Sendable, Hashable, Codable {
        var part: String
        var path: String
        var inode: UInt64
        var writtenAt: Int64
        var bytes: Int64
        /// The start of the machine in which that was.
        var bootID: String

        var identity: FileIdentity { FileIdentity(inode: inode, size: bytes, writtenAt: writtenAt) }
    }

    struct Saving: Sendable, Hashable, Codable {
        var createsDirectories: Bool
        var isSynced: Bool
        var pauseGrace: Duration
        var resumes: Bool
        var failsWhenChanged: Bool
        var digest: Checksum.Algorithm?
        var segments: Int?
    }

    /// Names it for ever, in every process.
    public let id: String
    /// What is asked for; it may hold secrets, which `description` leaves out.
    public let url: String
    /// The request's fields without those that carry credentials.
    public let fields: HeaderFields
    /// The names of the fields that were not written.
    public let withheldFields: [HeaderName]
    /// What the request does differently from its session.
    public let options: Request.Options
    /// The path of the file, or of the directory that it goes into.
    public let destination: String
    /// Whether ``destination`` is a directory, in which the file has the name that the server suggests.
    public let isInDirectory: Bool
    /// What becomes of a file that is there already.
    public let overwrite: DownloadOverwrite
    /// The digest that the file has to have.
    public let checksum: Checksum?
    /// Whatever the program wants to remember with it.
    public let userInfo: [String: String]
    /// Where it stands.
    public internal(set) var state = State.waiting
    /// How often it was begun, in all processes.
    public internal(set) var attempts = 0
    /// The path of the finished file.
    public internal(set) var path: String?
    /// How many bytes the finished file has.
    public internal(set) var bytes: Int64?
    /// Why it failed, as ``NetworkError/code-swift.property`` and a sentence.
    public internal(set) var failure: String?
    /// How often it was begun again after a failure, so that the next one is news.
    var retries = 0
    var placing: Placing?
    var saving: Saving

    /// Takes down what is to be downloaded.
    ///
    /// - Throws: `NetworkError` of kind `.invalidRequest` for what cannot be written down.
    init(
        _ request: Request, to destination: DownloadDestination, overwrite: DownloadOverwrite,
        expecting checksum: Checksum?, saving: DownloadOptions, userInfo: [String: String],
        withholding more: Set<HeaderName> = []
    ) throws(NetworkError) {
        func refusal(_ flaw: NetworkError.RequestFlaw, _ message: String, _ hint: String) -> NetworkError {
            NetworkError(invalid: flaw, message, hint: hint, request: request)
        }
        guard request.method == .get, request.body.isNone else {
            throw refusal(
                .method, "A store accepts only GET downloads without a body.", "Other downloads cannot be resumed.")
        }
        guard request.trust == nil else {
            throw refusal(
                .option, "A request with its own trust evaluator cannot be stored: the evaluator would be lost.",
                "Set the evaluator on the session.")
        }
        switch destination.place {
        case .file(let path): (self.destination, isInDirectory) = (DiskFile.absolute(path), false)
        case .directory(let path): (self.destination, isInDirectory) = (DiskFile.absolute(path), true)
        case .choosing:
            throw refusal(.destination, "A closure that chooses the path cannot be stored.", "Use .file or .directory.")
        }
        id = UUID().uuidString
        url = request.urlText
        func isSecret(_ name: HeaderName) -> Bool { name.isSensitive || more.contains(name) }
        fields = HeaderFields(request.fields.filter { !isSecret($0.name) })
        var withheld: [HeaderName] = []
        for field in request.fields where isSecret(field.name) && !withheld.contains(field.name) {
            withheld.append(field.name)
        }
        withheldFields = withheld
        options = request.options
        self.overwrite = overwrite
        self.checksum = checksum
        self.userInfo = userInfo
        self.saving = Saving(
            createsDirectories: saving.createsDirectories, isSynced: saving.isSynced, pauseGrace: saving.pauseGrace,
            resumes: saving.resumes, failsWhenChanged: saving.failsWhenChanged, digest: saving.digest,
            segments: saving.segments)
        guard let text = try? JSONEncoder().encode(self), (try? JSONDecoder().decode(Self.self, from: text)) == self
        else {
            throw refusal(
                .option, "The request or its options cannot be stored: they change when encoded and decoded.",
                "Remove values that are not ordinary numbers, such as an infinite wait.")
        }
    }

    var place: DownloadDestination { isInDirectory ? .directory(destination) : .file(destination) }

    /// What is asked for, without what was not written.
    var request: Request {
        var request = Request(url, fields: fields)
        request.options = options
        return request
    }

    func options(in queue: DownloadQueue) -> DownloadOptions {
        var options = DownloadOptions()
        options.createsDirectories = saving.createsDirectories
        options.isSynced = saving.isSynced
        options.pauseGrace = saving.pauseGrace
        options.resumes = saving.resumes
        options.failsWhenChanged = saving.failsWhenChanged
        options.digest = saving.digest
        options.segments = saving.segments ?? 1
        options.queue = queue
        return options
    }

    /// The greatest count that is read from a journal.
    private static let greatestCount = Int(Int32.max)

    /// The record with its counts and durations within what can be computed with, whatever a journal says.
    var bounded: StoredDownload {
        var record = self
        record.attempts = min(max(attempts, 0), Self.greatestCount)
        record.retries = min(max(retries, 0), Self.greatestCount)
        record.saving.pauseGrace = DownloadOptions.bounded(saving.pauseGrace)
        return record
    }

    /// Counts one more beginning; the greatest count stays as it is.
    mutating func countAttempt() { attempts = min(attempts, .max - 1) + 1 }

    /// Counts one more beginning after a failure; the greatest count stays as it is.
    mutating func countRetry() { retries = min(retries, .max - 1) + 1 }

    /// Whether it is over, with or without a file.
    var isOver: Bool { state == .finished || state == .failed }
}

extension StoredDownload: Codable {}

extension StoredDownload: CustomStringConvertible, CustomReflectable {
    /// One line, without user-info and query of the URL.
    public var description: String {
        "\(redactedURL(url)) to \(path ?? destination): \(state.rawValue)" + (failure.map { ", \($0)" } ?? "")
    }

    /// The line alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
