// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Machine: addresses of Unix sockets, at which services of this machine listen.

internal import CurlewShims
internal import Glibc

/// The address of a Unix socket (unix(7)).
struct UnixAddress: Sendable {
    private var storage = sockaddr_un()
    private let length: socklen_t

    /// Creates an address.
    ///
    /// - Parameter name: A path, or a zero byte and a name in the abstract namespace. The result is nil for a name that
    ///   is empty or does not fit.
    init?(_ name: [UInt8]) {
        guard let first = name.first else { return nil }
        // The name of an abstract socket ends with the address; a path also has a final zero.
        let count = name.count + (first == 0 ? 0 : 1)
        guard count <= MemoryLayout.size(ofValue: storage.sun_path) else { return nil }
        storage.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &storage.sun_path) { $0.copyBytes(from: name) }
        length = socklen_t(MemoryLayout<sa_family_t>.size + count)
    }

    /// Calls a closure with the address and its length in bytes.
    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    /// Connects a stream socket that does not block.
    ///
    /// A connection to a Unix socket is never in progress: it succeeds or fails at once.
    ///
    /// - Returns: The socket, or on failure the negative value of `errno`.
    func connected() -> CInt {
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { return -errno }
        if withPointer({ connect(descriptor, $0, $1) }) == 0 { return descriptor }
        let code = errno
        close(descriptor)
        return -code
    }
}
