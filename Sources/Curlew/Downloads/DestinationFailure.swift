// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials
internal import Glibc

/// Why a file could not be put where it was to be; the cause of an error of kind `.destinationFailed`.
public struct DestinationFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is in the way.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// There is a file of that name, and it was not to be replaced (EEXIST).
        case exists
        /// The directory is missing (ENOENT).
        case missingDirectory
        /// What should be a directory is none, or the other way round (ENOTDIR, EISDIR).
        case notADirectory
        /// The user may not write there (EACCES, EPERM).
        case noPermission
        /// The file system can only be read (EROFS).
        case readOnly
        /// The disk is full, or the user's share of it (ENOSPC, EDQUOT).
        case noSpace
        /// The file would be larger than the file system or a limit of the process allows (EFBIG).
        case tooLarge
        /// Another download writes the same part file.
        case busy
        /// A device, a FIFO or a socket has that name, which a file never replaces.
        case notAFile
        /// Something that no download of this user has made stands where the part file or its note would be.
        case foreignPart
        /// The directory of a store, or a file in it, belongs to another user, is writable by others, is a symbolic
        /// link, or is a file with more than one hard link (EPERM).
        case foreignStore
        /// The name is too long, that of the part file included (ENAMETOOLONG).
        case nameTooLong
        /// Something else, which `errno` tells.
        case other
    }

    /// What is in the way.
    public let reason: Reason
    /// The path of the file or directory.
    public let path: String
    /// The system's number; 0 when it was not asked.
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

    /// One sentence, with the path.
    public var description: String { text }
}

extension DiskFailure {
    /// What is in the way, where that is no word of the system's.
    fileprivate var found: DestinationFailure.Reason? {
        isForeign ? .foreignPart : isForeignStore ? .foreignStore : isSpecial ? .notAFile : nil
    }
}

extension DestinationFailure.Reason {
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

    /// What to try.
    var hint: String? {
        switch self {
        case .exists: "Choose another name, or overwrite: .replace or .uniquify."
        case .missingDirectory: "Make the directory first, or set createsDirectories."
        case .notADirectory: "Look at the path: .directory is for a directory, .file for a file's path."
        case .noPermission, .readOnly: "Choose a directory that this user can write to."
        case .noSpace: "Make room; the same download goes on with what could be kept."
        case .tooLarge: "Raise the limit (ulimit -f), or choose another file system."
        case .busy: "Wait for the other download of it, or choose another name."
        case .notAFile: "Choose another name; a download writes regular files alone."
        case .foreignPart: "Remove or rename it, or give the download another name."
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
    /// What the file system's refusal means to a download.
    init(_ failure: DiskFailure, request: Request?) {
        let failure = DestinationFailure(failure)
        self.init(
            .destinationFailed, phase: .saving, "\(failure.description.capitalizedSentence).",
            hint: failure.reason.hint,
            cause: failure, request: request)
    }
}

extension String {
    /// With a capital letter at its start.
    fileprivate var capitalizedSentence: String { prefix(1).uppercased() + dropFirst() }
}

extension DestinationFailure: LocalizedError {
    /// The description as a sentence, which is also `localizedDescription`.
    public var errorDescription: String? { "\(description.capitalizedSentence).".escapingControls }

    /// What to try, if there is something.
    public var recoverySuggestion: String? { reason.hint }
}
