// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension TransferStore {
    /// The record of a download in a store: the request, the destination and the state.
    ///
    /// Fields that are known to carry credentials (``HeaderName/isSensitive``) and fields that the program names are
    /// not written to the disk; ``withheldFields`` has their names. The URL is written as it is, including any secrets
    /// in it.
    public struct Download: Sendable, Hashable, Identifiable {
        /// The state of a stored download.
        public enum State: String, Sendable, Hashable, Codable, CaseIterable {
            /// The download has not started, or was interrupted and can be resumed.
            case waiting
            /// The download has started.
            case running
            /// The download is complete, and the file has its final name.
            case finished
            /// The download has failed.
            case failed
        }

        /// A complete part file that is about to be renamed to its final name.
        struct PendingRename: Sendable, Hashable, Codable {
            var part: String
            var path: String
            var inode: UInt64
            var writtenAt: Int64
            var bytes: Int64
            /// The boot id of the machine at that time.
            var bootID: String

            var identity: FileIdentity { FileIdentity(inode: inode, size: bytes, writtenAt: writtenAt) }
        }

        struct StoredOptions: Sendable, Hashable, Codable {
            var createsDirectories: Bool
            var isSynced: Bool
            var pauseGrace: Duration
            var resumes: Bool
            var failsWhenChanged: Bool
            var digest: Checksum.Algorithm?
            var segments: Int?
        }

        /// The unique id of the record, which stays the same in every process.
        public let id: String
        /// The URL of the request; it may hold secrets, which `description` leaves out.
        public let url: String
        /// The request's fields, without the withheld ones.
        public let fields: HeaderFields
        /// The names of the request's fields that were not written, because they carry credentials or the program named
        /// them.
        public let withheldFields: [HeaderName]
        /// The options of the request, which override those of the session.
        public let options: Request.Options
        /// The path of the file, or of the directory for the file.
        public let destination: String
        /// Whether ``destination`` is a directory; the server suggests the file's name then.
        public let isInDirectory: Bool
        /// The policy for an existing file of the same name.
        public let overwrite: DownloadDestination.Overwrite
        /// The expected digest of the file.
        public let checksum: Checksum?
        /// Values that the program stores with the record.
        public let userInfo: [String: String]
        /// The state of the download.
        public internal(set) var state = State.waiting
        /// The number of times that the download was started, in all processes together.
        public internal(set) var attempts = 0
        /// The path of the finished file.
        public internal(set) var path: String?
        /// The size of the finished file in bytes.
        public internal(set) var bytes: Int64?
        /// The reason of a failure, as ``NetworkError/code-swift.property`` and a sentence.
        public internal(set) var failure: String?
        /// The number of retries after failures, which makes each further failure differ from the one before.
        var retries = 0
        var placing: PendingRename?
        var saving: StoredOptions

        /// Creates the record of a new download.
        ///
        /// - Throws: `NetworkError` of kind `.invalidRequest` for a request, a destination or options that cannot be
        ///   stored.
        init(
            _ request: Request, to destination: DownloadDestination, overwrite: DownloadDestination.Overwrite,
            expecting checksum: Checksum?, options: DownloadOptions, userInfo: [String: String],
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
            switch destination.location {
            case .file(let path): (self.destination, isInDirectory) = (DiskFile.absolute(path), false)
            case .directory(let path): (self.destination, isInDirectory) = (DiskFile.absolute(path), true)
            case .choosing:
                throw refusal(
                    .destination, "A closure that chooses the path cannot be stored.", "Use .file or .directory.")
            }
            id = UUID().uuidString
            url = request.url
            func isSecret(_ name: HeaderName) -> Bool { name.isSensitive || more.contains(name) }
            fields = HeaderFields(request.fields.filter { !isSecret($0.name) })
            var withheld: [HeaderName] = []
            for field in request.fields where isSecret(field.name) && !withheld.contains(field.name) {
                withheld.append(field.name)
            }
            withheldFields = withheld
            self.options = request.options
            self.overwrite = overwrite
            self.checksum = checksum
            self.userInfo = userInfo
            self.saving = StoredOptions(
                createsDirectories: options.createsDirectories, isSynced: options.isSynced,
                pauseGrace: options.pauseGrace,
                resumes: options.resumes, failsWhenChanged: options.failsWhenChanged, digest: options.digest,
                segments: options.segments)
            guard let text = try? JSONEncoder().encode(self), (try? JSONDecoder().decode(Self.self, from: text)) == self
            else {
                throw refusal(
                    .option, "The request or its options cannot be stored: they change when encoded and decoded.",
                    "Set proxies with credentials, fields, trust or a closure on the session, and remove values that are "
                        + "not ordinary numbers, such as an infinite wait.")
            }
        }

        var place: DownloadDestination { isInDirectory ? .directory(destination) : .file(destination) }

        /// The request, without the withheld fields.
        var request: Request {
            var request = Request(url, fields: fields)
            request.options = options
            return request
        }

        func options(in queue: DownloadOptions.Queue) -> DownloadOptions {
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

        /// The greatest count that is accepted from a journal.
        private static let greatestCount = Int(Int32.max)

        /// The record with its counts and durations clamped to safe ranges, for records read from a journal.
        var bounded: TransferStore.Download {
            var record = self
            record.attempts = min(max(attempts, 0), Self.greatestCount)
            record.retries = min(max(retries, 0), Self.greatestCount)
            record.saving.pauseGrace = DownloadOptions.bounded(saving.pauseGrace)
            return record
        }

        /// Increments `attempts`, which saturates.
        mutating func incrementAttempts() { attempts = min(attempts, .max - 1) + 1 }

        /// Increments `retries`, which saturates.
        mutating func incrementRetries() { retries = min(retries, .max - 1) + 1 }

        /// Whether the download has finished or failed.
        var isOver: Bool { state == .finished || state == .failed }
    }
}

extension TransferStore.Download: Codable {}

extension TransferStore.Download: CustomStringConvertible, CustomReflectable {
    /// A line of text, without user-info and query of the URL.
    public var description: String {
        "\(redactedURL(url)) to \(path ?? destination): \(state.rawValue)" + (failure.map { ", \($0)" } ?? "")
    }

    /// A mirror whose only child is `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
