// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials
internal import Glibc

extension DownloadDestination {
    /// The reason why a file could not be written to its destination; the cause of an error of kind
    /// `.destinationFailed`.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kind of the failure.
        public enum Reason: String, Sendable, Hashable, CaseIterable {
            /// A file of that name exists, and the download must not replace it (EEXIST).
            case exists
            /// The directory does not exist (ENOENT).
            case missingDirectory
            /// A component of the path is not a directory, or the path of the file is a directory (ENOTDIR, EISDIR).
            case notADirectory
            /// The user lacks permission to write there (EACCES, EPERM).
            case noPermission
            /// The file system is read-only (EROFS).
            case readOnly
            /// The disk or the user's quota is full (ENOSPC, EDQUOT).
            case noSpace
            /// The file would be larger than the file system or a limit of the process allows (EFBIG).
            case tooLarge
            /// Another download writes the same part file.
            case busy
            /// A device, a FIFO or a socket has that name; a download never replaces these.
            case notAFile
            /// A file that no download of this user has created has the name of the part file or its note.
            case foreignPart
            /// The directory of a store, or a file in it, belongs to another user, is writable by others, is a symbolic
            /// link, or is a file with more than one hard link (EPERM).
            case foreignStore
            /// The name of the file, or of its part file, is too long (ENAMETOOLONG).
            case nameTooLong
            /// Any other error; `errno` has its number.
            case other
        }

        /// The kind of the failure.
        public let reason: Reason
        /// The path of the file or directory.
        public let path: String
        /// The system's error number; 0 when the failure has no error number.
        public let errno: Int32
        private let text: String

        init(_ failure: DiskFailure) {
            reason = failure.found ?? Reason(failure.errno)
            path = failure.path
            errno = failure.errno
            text = failure.description
        }

        init(_ reason: Reason, _ path: String, _ text: String) {
            self.reason = reason
            self.path = path
            self.text = text
            errno = 0
        }

        /// A sentence with the path.
        public var description: String { text }
    }
}

extension DiskFailure {
    /// The reasons that have no error number of their own.
    fileprivate var found: DownloadDestination.Failure.Reason? {
        isForeign ? .foreignPart : isForeignStore ? .foreignStore : isSpecial ? .notAFile : nil
    }
}

extension DownloadDestination.Failure.Reason {
    fileprivate init(_ code: Int32) {
        self =
            switch code {
            case EEXIST: .exists
            case ENOENT: .missingDirectory
            case ENOTDIR, EISDIR: .notADirectory
            case EACCES, EPERM: .noPermission
            case EROFS: .readOnly
            case ENOSPC, EDQUOT: .noSpace
            case EFBIG: .tooLarge
            case EWOULDBLOCK: .busy
            case ENAMETOOLONG: .nameTooLong
            default: .other
            }
    }

    /// A suggestion for the user.
    var hint: String? {
        switch self {
        case .exists: "Choose another name, or overwrite: .replace or .uniquify."
        case .missingDirectory: "Create the directory first, or set createsDirectories."
        case .notADirectory: "Check the path: .directory is for a directory, .file for a file's path."
        case .noPermission, .readOnly: "Choose a directory that this user can write to."
        case .noSpace: "Free some space; the same download then resumes from the bytes that were stored."
        case .tooLarge: "Raise the limit (ulimit -f), or choose another file system."
        case .busy: "Wait for the other download of this file, or choose another name."
        case .notAFile: "Choose another name; a download writes only regular files."
        case .foreignPart: "Remove or rename that file, or choose another name for the download."
        case .foreignStore:
            "The store's directory and files must belong to this user and must not be writable by others (chmod go-w). "
                + "The directory must not be a symbolic link, and each file must have one hard link. Fix that, or "
                + "choose another directory."
        case .nameTooLong: "A name has \(FileName.longest) bytes at most, as UTF-8."
        case .other: nil
        }
    }
}

extension NetworkError {
    /// Creates the error of a download from a failure of the file system.
    init(_ failure: DiskFailure, request: Request?) {
        let failure = DownloadDestination.Failure(failure)
        self.init(
            .destinationFailed, phase: .saving, "\(failure.description.capitalizedSentence).",
            hint: failure.reason.hint,
            cause: failure, request: request)
    }
}

extension String {
    /// The string with an upper-case first letter.
    fileprivate var capitalizedSentence: String { prefix(1).uppercased() + dropFirst() }
}

extension DownloadDestination.Failure: LocalizedError {
    /// The description as a sentence, which is also `localizedDescription`.
    public var errorDescription: String? { "\(description.capitalizedSentence).".escapingControls }

    /// A suggestion for the user, if there is one.
    public var recoverySuggestion: String? { reason.hint }
}
