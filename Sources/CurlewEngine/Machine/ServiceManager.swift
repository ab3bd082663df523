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

    private let address: UnixAddress

    /// Creates the receiver at an address.
    ///
    /// - Parameter address: An absolute path, or the name of an abstract socket after `@`; nil for other addresses.
    package init?(address: String) {
        var name = Array(address.utf8)
        guard name.count > 1 else { return nil }
        switch name[0] {
        case UInt8(ascii: "/"): break
        case UInt8(ascii: "@"): name[0] = 0
        default: return nil
        }
        guard let address = UnixAddress(name) else { return nil }
        self.address = address
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
        let message = Self.message(status: status)
        let count = address.withPointer { address, length in
            sendto(descriptor, message, message.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), address, length)
        }
        return count == message.count
    }
}
