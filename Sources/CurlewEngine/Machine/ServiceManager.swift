// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Machine: the status that this process reports to its service manager.

internal import CurlewShims
internal import Glibc

/// The service manager of this process, such as systemd, which receives its status (sd_notify(3)).
package struct ServiceManager: Sendable {
    /// The maximum number of bytes of a status.
    package static let longestStatus = 1024

    /// The path of a socket; the first byte is 0 for a socket in the abstract namespace.
    private let path: [UInt8]

    /// Creates the receiver at an address.
    ///
    /// - Parameter address: An absolute path, or the name of an abstract socket after `@`; nil for other addresses.
    package init?(address: String) {
        var path = Array(address.utf8)
        guard path.count > 1, path.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { return nil }
        switch path[0] {
        case UInt8(ascii: "/"): break
        case UInt8(ascii: "@"): path[0] = 0
        default: return nil
        }
        self.path = path
    }

    /// The receiver that `NOTIFY_SOCKET` names; nil outside of a service that has one.
    package static var current: ServiceManager? {
        curlew_trusted_variable("NOTIFY_SOCKET").flatMap { ServiceManager(address: String(cString: $0)) }
    }

    /// Returns the message for a status in one line, because a line break would begin another variable of the protocol.
    package static func message(status: String) -> [UInt8] {
        var text: [UInt8] = []
        for scalar in status.unicodeScalars {
            let isControl = scalar.value < 0x20 || scalar.value == 0x7F
            let bytes = Array(String(isControl ? " " : scalar).utf8)
            if text.count + bytes.count > longestStatus { break }
            text += bytes
        }
        return Array("STATUS=".utf8) + text
    }

    /// Sends a status without waiting; a message that the receiver cannot take at once is lost.
    ///
    /// - Returns: Whether the message was sent.
    @discardableResult
    package func send(status: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path) }
        // The name of an abstract socket ends with the address; a path also has a final zero.
        let length = MemoryLayout<sa_family_t>.size + path.count + (path[0] == 0 ? 0 : 1)
        let message = Self.message(status: status)
        let count = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(
                    descriptor, message, message.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), address,
                    socklen_t(length))
            }
        }
        return count == message.count
    }
}
