// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

@testable import Curlew

/// A datagram socket that receives messages for a service manager.
final class StatusSocket: Sendable {
    let address: String
    private let descriptor: CInt

    init(isAbstract: Bool) throws {
        let name = "curlew-status-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        address = isAbstract ? "@\(name)" : "/tmp/\(name)"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var bytes = Array(address.utf8)
        if isAbstract { bytes[0] = 0 }
        var end = sockaddr_un()
        end.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &end.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1))
        let result = withUnsafePointer(to: &end) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        if result != 0 { throw POSIXFailure(errno: errno) }
    }

    deinit {
        close(descriptor)
        if address.hasPrefix("/") { unlink(address) }
    }

    /// Returns the next message; nil when the queue is empty.
    func receive() -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
