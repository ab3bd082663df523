// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// What the file system refused to do.
package struct DiskFailure: Error, CustomStringConvertible {
    /// What was tried: "cannot write".
    package let what: String
    package let path: String
    package let errno: Int32
    /// Whether something is there that Curlew has not made.
    package var isForeign = false
    /// Whether there is a device, a FIFO or a socket.
    package var isSpecial = false
    /// Whether a store was to be in a directory, or of files, that are not this user's alone.
    package var isForeignStore = false

    /// Something is there that Curlew has not made.
    package init(foreign what: String, _ path: String) {
        self.init(what, path, EEXIST)
        isForeign = true
    }

    /// A device, a FIFO or a socket stands where a file is to be.
    package init(special what: String, _ path: String) {
        self.init(what, path, EEXIST)
        isSpecial = true
    }

    /// A store's directory, or a file of it, is not this user's alone.
    package init(foreignStore what: String, _ path: String) {
        self.init(what, path, EPERM)
        isForeignStore = true
    }

    package init(_ what: String, _ path: String, _ errno: Int32) {
        self.what = what
        self.path = path
        self.errno = errno
    }

    /// The number of a failure because there is something of that name.
    package static let taken = EEXIST

    /// The number of a failure because the task that waits was cancelled.
    package static let cancelled = ECANCELED

    /// Whether there is something of that name.
    package var isTaken: Bool { errno == EEXIST }

    /// Whether somebody else has it.
    package var isBusy: Bool { errno == EWOULDBLOCK }

    /// Whether there is no room: a full disk, the user's share of it, or a limit of the process.
    package var isFull: Bool { errno == ENOSPC || errno == EDQUOT || errno == EFBIG }

    package var description: String { "\(what) \(path): \(String(cString: strerror(errno)))" }
}

extension DiskThread {
    /// What a job gives that may fail.
    ///
    /// - Parameter path: The file that the job is about; jobs about files of one directory run one after the other.
    /// - Throws: What the job throws; a failure with `ENOMEM` when there is no thread.
    package func result<Value: Sendable>(
        at path: String = "", of job: @escaping @Sendable () throws(DiskFailure) -> Value
    ) async throws(DiskFailure) -> Value {
        let result = await value(at: path) { () -> Result<Value, DiskFailure> in
            do throws(DiskFailure) { return .success(try job()) } catch { return .failure(error) }
        }
        guard let result else { throw DiskFailure("no thread for", "the disk", ENOMEM) }
        return try result.get()
    }
}
