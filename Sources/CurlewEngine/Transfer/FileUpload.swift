// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// The reason why a file, a descriptor or a piece of a body could not be read.
package struct SourceFailure: Error, CustomStringConvertible {
    package let what: String
    package let errno: Int32
    /// The error that the producer of a piece threw.
    package let cause: (any Error)?

    package init(what: String, errno: Int32, cause: (any Error)? = nil) {
        self.what = what
        self.errno = errno
        self.cause = cause
    }

    package var description: String { errno == 0 ? what : "\(what): \(String(cString: strerror(errno)))" }

    /// Returns the failure with the label of a piece of the body in front of its text.
    func of(_ label: String?) -> SourceFailure {
        label.map { SourceFailure(what: "\($0): \(what)", errno: errno, cause: cause) } ?? self
    }
}

/// A descriptor that is closed with its last reference.
package final class OwnedDescriptor: Sendable {
    let number: CInt

    init(_ number: CInt) { self.number = number }

    /// Duplicates a descriptor, so that its owner may close it.
    ///
    /// - Throws: `SourceFailure` if the descriptor is not open for reading.
    package init(duplicating descriptor: Int32) throws(SourceFailure) {
        number = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        let code = number < 0 ? errno : 0
        let mode = fcntl(descriptor, F_GETFL)
        guard number >= 0, mode >= 0, mode & O_ACCMODE != O_WRONLY else {
            throw SourceFailure(what: "descriptor \(descriptor) cannot be read", errno: code)
        }
    }

    deinit { if number >= 0 { Glibc.close(number) } }

    /// The number of bytes from the current position to the end of a regular file; nil for other descriptors.
    var rest: Int64? {
        var facts = stat()
        guard fstat(number, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        return max(0, Int64(facts.st_size) - Int64(lseek(number, 0, SEEK_CUR)))
    }
}

extension UploadPipe {
    /// The maximum number of bytes read at once.
    static let piece = 64 << 10

    /// Creates a pipe that sends a regular file from its start; the file is opened when the body is first read.
    ///
    /// - Throws: `SourceFailure` if there is no such regular file.
    package static func file(_ path: String) throws(SourceFailure) -> UploadPipe {
        try pieces([BodyPiece(.file(path))])
    }

    /// Creates a pipe that sends the bytes of a descriptor until its end.
    package static func descriptor(_ owner: OwnedDescriptor, length: Int64?, use: SourceUse? = nil) -> UploadPipe {
        let known = length ?? owner.rest
        let current = Lock<DescriptorReader?>(nil)
        return UploadPipe(
            length: known, canReplay: false, use: use, wantsMore: { current.withLock { $0 }?.poke() },
            open: { feed in
                let reader = DescriptorReader(owner, feed: feed)
                current.withLock { $0 = reader }
                reader.start()
                return {
                    current.withLock { $0 = nil }
                    reader.stop()
                }
            })
    }

    /// Reads a pipe, socket or terminal on its own thread, because a read may block for any time.
    final class DescriptorReader: @unchecked Sendable {
        // Safe because the flag is locked and everything else is constant.
        private let source: OwnedDescriptor
        private let feed: Feed
        private let signal = OwnedDescriptor(curlew_eventfd_create())
        private let isStopped = Lock(false)

        init(_ source: OwnedDescriptor, feed: Feed) {
            self.source = source
            self.feed = feed
        }

        func start() {
            let failure = signal.number < 0 ? EMFILE : startThread("curlew-source") { self.work() }
            if failure != 0 { feed.finish(SourceFailure(what: "no thread to read the descriptor", errno: failure)) }
        }

        func poke() { eventfd_write(signal.number, 1) }

        func stop() {
            isStopped.withLock { $0 = true }
            poke()
        }

        private func work() {
            while !isStopped.withLock({ $0 }) {
                // `poll` ignores a descriptor of -1: with a full queue, the thread waits only for `poke` or `stop`.
                let wanted = feed.hasCapacity ? source.number : -1
                var waiting = [
                    pollfd(fd: wanted, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: signal.number, events: Int16(POLLIN), revents: 0),
                ]
                poll(&waiting, 2, -1)
                if waiting[1].revents != 0 {
                    var value = eventfd_t()
                    eventfd_read(signal.number, &value)
                }
                if waiting[0].revents != 0, !readOnce() { return }
            }
        }

        /// Returns false at the end.
        private func readOnce() -> Bool {
            var result = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: UploadPipe.piece) { buffer, count in
                result = read(source.number, buffer.baseAddress, UploadPipe.piece)
                count = max(0, result)
            }
            if result > 0 { return feed.offer(bytes) }
            let code = errno
            if result < 0 && (code == EAGAIN || code == EINTR) { return true }
            feed.finish(result == 0 ? nil : SourceFailure(what: "cannot read the descriptor", errno: code))
            return false
        }
    }
}
