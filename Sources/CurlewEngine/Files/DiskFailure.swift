// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A failed operation of the file system.
package struct DiskFailure: Error, CustomStringConvertible {
    /// The failed operation, such as "cannot write".
    package let operation: String
    package let path: String
    package let errno: Int32
    /// Whether the path has a file that Curlew did not create.
    package var isForeign = false
    /// Whether the path is a device, a FIFO or a socket.
    package var isSpecial = false
    /// Whether the path is the directory or a file of a store, and other users own it or may write it.
    package var isForeignStore = false

    /// Creates a failure for a file that Curlew did not create.
    package init(foreign operation: String, _ path: String) {
        self.init(operation, path, EEXIST)
        isForeign = true
    }

    /// Creates a failure for a device, a FIFO or a socket at the path of a file.
    package init(special operation: String, _ path: String) {
        self.init(operation, path, EEXIST)
        isSpecial = true
    }

    /// Creates a failure for the directory or a file of a store that other users own or may write.
    package init(foreignStore operation: String, _ path: String) {
        self.init(operation, path, EPERM)
        isForeignStore = true
    }

    package init(_ operation: String, _ path: String, _ errno: Int32) {
        self.operation = operation
        self.path = path
        self.errno = errno
    }

    /// The error number for a path that already exists.
    package static let existsNumber = EEXIST

    /// The failure to start a disk thread.
    package static let noThread = DiskFailure("no thread for", "the disk", ENOMEM)

    /// The error number for a job whose waiting task was cancelled.
    package static let cancelled = ECANCELED

    /// Whether the path already exists.
    package var alreadyExists: Bool { errno == EEXIST }

    /// Whether another process or download holds the lock.
    package var isBusy: Bool { errno == EWOULDBLOCK }

    /// Whether there is no space: the disk is full, or a quota of the user or a limit of the process is reached.
    package var isFull: Bool { errno == ENOSPC || errno == EDQUOT || errno == EFBIG }

    package var description: String { "\(operation) \(path): \(String(cString: strerror(errno)))" }
}

extension DiskThread {
    /// Runs a job that may fail, and returns its result.
    ///
    /// - Parameter path: The file of the job; jobs for files of the same directory run one after the other.
    /// - Throws: The error of the job; a failure with `ENOMEM` when no thread can be started.
    package func result<Value: Sendable>(
        at path: String = "", of job: @escaping @Sendable () throws(DiskFailure) -> Value
    ) async throws(DiskFailure) -> Value {
        let result = await value(at: path) { () -> Result<Value, DiskFailure> in
            do throws(DiskFailure) { return .success(try job()) } catch { return .failure(error) }
        }
        guard let result else { throw .noThread }
        return try result.get()
    }
}
