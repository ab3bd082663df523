// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Why a file or descriptor could not be read.
package struct SourceFailure: Error, CustomStringConvertible {
    package let what: String
    package let errno: Int32

    package var description: String { errno == 0 ? what : "\(what): \(String(cString: strerror(errno)))" }
}

/// Closes its descriptor with the last reference.
package final class OwnedDescriptor: Sendable {
    let number: CInt

    init(_ number: CInt) { self.number = number }

    /// Duplicates a descriptor, so that its owner may close it.
    ///
    /// - Throws: `SourceFailure` when the descriptor is not open for reading.
    package init(duplicating descriptor: Int32) throws(SourceFailure) {
        number = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        let code = number < 0 ? errno : 0
        let mode = fcntl(descriptor, F_GETFL)
        guard number >= 0, mode >= 0, mode & O_ACCMODE != O_WRONLY else {
            throw SourceFailure(what: "descriptor \(descriptor) cannot be read", errno: code)
        }
    }

    deinit { if number >= 0 { Glibc.close(number) } }
}

extension UploadPipe {
    private static let piece = 64 << 10

    /// A pipe that sends a regular file from its start, opened only when it is wanted.
    ///
    /// - Throws: `SourceFailure` when there is no such regular file.
    package static func file(_ path: String) throws(SourceFailure) -> UploadPipe {
        var facts = stat()
        // C would read the path up to the NUL, and send another file than the one that is named.
        guard !path.utf8.contains(0) else { throw SourceFailure(what: "a file's path contains a NUL", errno: 0) }
        guard stat(path, &facts) == 0 else { throw SourceFailure(what: "cannot read \(path)", errno: errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw SourceFailure(what: "\(path) is not a regular file", errno: 0)
        }
        let length = Int64(facts.st_size)
        let current = Lock<FileReader?>(nil)
        return UploadPipe(
            length: length, canReplay: true, wantsMore: { current.withLock { $0 }?.readMore() },
            open: { feed in
                let reader = FileReader(path: path, length: length, feed: feed)
                current.withLock { $0 = reader }
                reader.readMore()
                return { current.withLock { $0 = nil as FileReader? } }
            })
    }

    /// A pipe that sends what a descriptor yields until its end.
    package static func descriptor(_ owner: OwnedDescriptor, length: Int64?, use: SourceUse? = nil) -> UploadPipe {
        var facts = stat()
        var known = length
        if known == nil, fstat(owner.number, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG {
            known = max(0, Int64(facts.st_size) - Int64(lseek(owner.number, 0, SEEK_CUR)))
        }
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

    /// Reads a file on the disk thread, as far ahead as the pipe has room.
    private final class FileReader: @unchecked Sendable {
        // Safe because everything mutable is touched by jobs of the disk thread alone, one after the other.
        private let path: String
        private let length: Int64
        private let feed: Feed
        private var file: OwnedDescriptor?
        private var offset: Int64 = 0
        private var isDone = false

        init(path: String, length: Int64, feed: Feed) {
            self.path = path
            self.length = length
            self.feed = feed
        }

        func readMore() {
            if !DiskThread.shared.run({ self.read() }) {
                feed.finish(SourceFailure(what: "no thread to read \(path)", errno: EAGAIN))
            }
        }

        private func read() {
            guard !isDone else { return }
            do throws(SourceFailure) {
                let file = try open()
                while offset < length {
                    // Without room the pipe calls again when there is some.
                    guard feed.hasRoom else { return }
                    let bytes = try piece(of: file)
                    offset += Int64(bytes.count)
                    if bytes.isEmpty || !feed.offer(bytes) { break }
                }
                end(nil)
            } catch {
                end(error)
            }
        }

        private func end(_ error: SourceFailure?) {
            isDone = true
            file = nil
            feed.finish(error)
        }

        private func open() throws(SourceFailure) -> OwnedDescriptor {
            if let file { return file }
            let number = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard number >= 0 else { throw SourceFailure(what: "cannot open \(path)", errno: errno) }
            let opened = OwnedDescriptor(number)
            var facts = stat()
            guard fstat(number, &facts) == 0, Int64(facts.st_size) == length else {
                throw SourceFailure(what: "\(path) changed its size before it was sent", errno: 0)
            }
            file = opened
            return opened
        }

        private func piece(of file: OwnedDescriptor) throws(SourceFailure) -> [UInt8] {
            var failure: CInt = 0
            let wanted = Int(min(Int64(UploadPipe.piece), length - offset))
            let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
                let result = pread(file.number, buffer.baseAddress, wanted, off_t(offset))
                failure = result < 0 ? errno : 0
                count = max(0, result)
            }
            if failure != 0 { throw SourceFailure(what: "cannot read \(path)", errno: failure) }
            return bytes
        }
    }

    /// Reads a pipe, socket or terminal on a thread of its own, since nobody knows how long that may block.
    private final class DescriptorReader: @unchecked Sendable {
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
                // A descriptor of -1 is ignored: a full pipe waits for room or the end only.
                let wanted = feed.hasRoom ? source.number : -1
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

        /// False at the end.
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
