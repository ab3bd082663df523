// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport
internal import Glibc

/// The socket of a ``MeteredConversation``, for a thread that already polls other descriptors.
///
/// The thread polls ``descriptor`` for ``events``, calls ``handle()`` when the descriptor is ready, and drops the
/// source when ``isClosed`` is true. All calls must come from one thread. No call blocks.
final class MeteredSource {
    /// The address of the system's message bus: `DBUS_SYSTEM_BUS_ADDRESS`, or the default address if it is unset.
    static var systemAddress: String {
        let address = TrustEnvironment.variable("DBUS_SYSTEM_BUS_ADDRESS") ?? ""
        return address.isEmpty ? "unix:path=/run/dbus/system_bus_socket" : address
    }

    /// The maximum number of bytes that wait to be sent.
    private static let maximumOutput = 64 << 10

    /// The socket; -1 after its end, which poll(2) ignores.
    private(set) var descriptor: CInt
    private var conversation: MeteredConversation
    private var output: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 8 << 10)

    /// Connects to a message bus.
    ///
    /// - Parameter address: A list of addresses; those that are not Unix sockets are skipped.
    /// - Returns: Nil if no address accepts the connection.
    convenience init?(address: String = MeteredSource.systemAddress) {
        for address in DBusAddress.list(address) {
            guard let socket = UnixAddress((address.isAbstract ? [0] : []) + address.name) else { continue }
            let descriptor = socket.connected()
            if descriptor >= 0 {
                self.init(descriptor: descriptor)
                return
            }
        }
        return nil
    }

    /// Starts the conversation on a connected socket.
    ///
    /// - Parameter descriptor: The socket, which the source closes.
    init(descriptor: CInt) {
        self.descriptor = descriptor
        conversation = MeteredConversation(userID: geteuid())
        perform(conversation.start())
        flush()
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The events to poll for: input, and output while bytes wait to be sent.
    var events: Int16 { Int16(POLLIN) | (output.isEmpty ? 0 : Int16(POLLOUT)) }

    /// Whether the connection is metered; nil if it is unknown.
    var isMetered: Bool? { conversation.isMetered }

    /// Whether the bus has closed the connection, or an error has ended it.
    var isClosed: Bool { descriptor < 0 }

    /// Waits until the conversation has the first value, or the reply that there is no value.
    ///
    /// - Parameter deadline: The latest end of the wait, by the monotonic clock in nanoseconds.
    func waitForValue(until deadline: UInt64) {
        while !isClosed, conversation.isPending {
            let now = Monotonic.now()
            if now >= deadline { return }
            var entry = pollfd(fd: descriptor, events: events, revents: 0)
            poll(&entry, 1, CInt(clamping: (deadline - now + 999_999) / 1_000_000))
            handle()
        }
    }

    /// Reads and writes without blocking.
    ///
    /// One call reads at most 8 KiB; further input makes the descriptor ready again.
    func handle() {
        receive()
        flush()
    }

    private func receive() {
        if isClosed { return }
        let count = recv(descriptor, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        if count > 0 {
            perform(conversation.receive(buffer[..<count]))
        } else if count == 0 || !Self.isTemporary(errno) {
            perform(conversation.end())
        }
    }

    private func flush() {
        while !isClosed, !output.isEmpty {
            let count = send(descriptor, output, output.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
            if count > 0 {
                output.removeFirst(count)
            } else {
                if !Self.isTemporary(errno) { perform(conversation.end()) }
                return
            }
        }
    }

    private func perform(_ actions: [MeteredConversation.Action]) {
        for action in actions {
            switch action {
            case .send(let bytes): output += bytes
            case .metered: break
            case .close: closeSocket()
            }
        }
        if output.count > Self.maximumOutput {
            _ = conversation.end()
            closeSocket()
        }
    }

    private func closeSocket() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        output = []
    }

    private static func isTemporary(_ code: CInt) -> Bool { code == EAGAIN || code == EINTR }
}
