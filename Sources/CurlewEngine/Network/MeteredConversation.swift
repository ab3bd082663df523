// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The conversation with the system's message bus about the property `Metered` of NetworkManager: a pure state machine.
///
/// idle → authenticating → greeting → watching; each state → closed, which is final. Authentication is the mechanism
/// EXTERNAL (D-Bus Specification, "Authentication Protocol").
///
/// Each user of the machine may send signals on the system bus, also signals with NetworkManager's path, and replies
/// without a call. The bus sets the sender of each message. The conversation therefore accepts a value only from the
/// owner of NetworkManager's name, and the name of the owner only from the bus.
struct MeteredConversation: Sendable {
    enum State: String, Sendable, CaseIterable { case idle, authenticating, greeting, watching, closed }

    /// An action that the conversation requests from its owner.
    enum Action: Sendable, Hashable {
        case send([UInt8])
        /// The value has changed; nil if it is unknown.
        case metered(Bool?)
        /// Close the socket.
        case close
    }

    static let bus = "org.freedesktop.DBus"
    static let busPath = "/org/freedesktop/DBus"
    static let properties = "org.freedesktop.DBus.Properties"
    /// The name of NetworkManager and of the interface with the property.
    static let manager = "org.freedesktop.NetworkManager"
    static let managerPath = "/org/freedesktop/NetworkManager"
    static let property = "Metered"
    /// The maximum length of a line of the authentication in bytes.
    static let maximumLine = 1024

    private(set) var state = State.idle
    /// Whether the connection is metered; nil if NetworkManager does not run, does not know it, or has not replied yet.
    private(set) var isMetered: Bool?

    private let userID: UInt32
    /// Received bytes of a line or message that is incomplete.
    private var input: [UInt8] = []
    private var lastSerial: UInt32 = 0
    /// The unique name of NetworkManager's connection; nil while NetworkManager does not run.
    private var owner: String?
    /// The number of the call `Hello`, until its reply.
    private var hello: UInt32?
    /// The numbers of the calls `AddMatch`, until their replies.
    private var matches: Set<UInt32> = []
    /// The number of the call `GetNameOwner`, until its reply.
    private var nameOwner: UInt32?
    /// The number of the call that reads the property, until its reply.
    private var metered: UInt32?
    /// Whether the property has changed since the call that reads it.
    private var isOutdated = false

    /// - Parameter userID: The effective user ID of the process.
    init(userID: UInt32) { self.userID = userID }

    /// Whether the first value is not known yet, and a reply will come.
    var isPending: Bool {
        switch state {
        case .idle, .closed: false
        case .authenticating, .greeting: true
        case .watching: nameOwner != nil || metered != nil
        }
    }

    // MARK: Inputs

    /// Starts the conversation on a connected socket.
    mutating func start() -> [Action] {
        guard state == .idle else { return [] }
        state = .authenticating
        let digits = "0123456789abcdef".utf8.map { $0 }
        let hexadecimal = String(userID).utf8.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        // The first byte is zero on all systems; some systems send credentials with it.
        return [.send([0] + Array("AUTH EXTERNAL ".utf8) + hexadecimal + [0x0D, 0x0A])]
    }

    /// Processes received bytes; an incomplete message has at most `DBusMessage.maximumSize` bytes.
    mutating func receive(_ bytes: some Collection<UInt8>) -> [Action] {
        guard state != .idle, state != .closed else { return [] }
        input += bytes
        var rest = input[...]
        var actions: [Action] = []
        do throws(DBusMessage.Flaw) {
            if state == .authenticating { try readLine(&rest, &actions) }
            while state == .greeting || state == .watching, let message = try nextMessage(&rest) {
                try process(message, &actions)
            }
        } catch {
            close(&actions)
        }
        input = state == .closed ? [] : Array(rest)
        return actions
    }

    /// Ends the conversation, after the bus has closed the connection or the socket has failed.
    mutating func end() -> [Action] {
        var actions: [Action] = []
        close(&actions)
        return actions
    }

    // MARK: Processing

    private mutating func close(_ actions: inout [Action]) {
        guard state != .closed else { return }
        state = .closed
        input = []
        set(nil, &actions)
        actions.append(.close)
    }

    private mutating func set(_ value: Bool?, _ actions: inout [Action]) {
        guard isMetered != value else { return }
        isMetered = value
        actions.append(.metered(value))
    }

    /// Reads the reply to the authentication.
    private mutating func readLine(
        _ rest: inout ArraySlice<UInt8>, _ actions: inout [Action]
    ) throws(DBusMessage.Flaw) {
        guard let end = rest.prefix(Self.maximumLine).firstIndex(of: 0x0A) else {
            if rest.count >= Self.maximumLine { throw .malformed }
            return
        }
        // The line contains the GUID of the bus, which identifies the bus in later conversations; this one ignores it.
        guard rest[..<end].starts(with: "OK ".utf8), rest[..<end].last == 0x0D else { throw .malformed }
        rest = rest[(end + 1)...]
        state = .greeting
        actions.append(.send(Array("BEGIN\r\n".utf8)))
        hello = call("Hello", [], &actions)
    }

    private func nextMessage(_ rest: inout ArraySlice<UInt8>) throws(DBusMessage.Flaw) -> DBusMessage? {
        guard let size = try DBusMessage.size(in: rest), size <= rest.count else { return nil }
        defer { rest = rest.dropFirst(size) }
        return try DBusMessage(rest.prefix(size))
    }

    private mutating func process(_ message: DBusMessage, _ actions: inout [Action]) throws(DBusMessage.Flaw) {
        switch message.kind {
        case .reply, .failure: try processReply(message, &actions)
        case .signal where state == .watching: try processSignal(message, &actions)
        case .signal, .call, nil: break
        }
    }

    private mutating func processReply(_ message: DBusMessage, _ actions: inout [Action]) throws(DBusMessage.Flaw) {
        guard let serial = message.replySerial else { return }
        let isFailure = message.kind == .failure
        let isFromBus = message.sender == Self.bus
        if serial == hello, isFromBus {
            if isFailure { return close(&actions) }
            hello = nil
            watch(&actions)
        } else if matches.contains(serial), isFromBus {
            matches.remove(serial)
            // Without the match, the conversation would miss changes.
            if isFailure { close(&actions) }
        } else if serial == nameOwner, isFromBus {
            nameOwner = nil
            let name = isFailure ? nil : try message.strings(1)?.first
            setOwner(name, &actions)
        } else if serial == metered, message.sender == owner || isFromBus && isFailure {
            metered = nil
            set(isFailure ? nil : Self.isMetered(try message.variantNumber()), &actions)
            if isOutdated { readProperty(&actions) }
        }
    }

    private mutating func processSignal(_ message: DBusMessage, _ actions: inout [Action]) throws(DBusMessage.Flaw) {
        guard let sender = message.sender else { return }
        switch (message.interface, message.member) {
        case (Self.bus, "NameOwnerChanged") where sender == Self.bus:
            guard let names = try message.strings(3), names[0] == Self.manager else { return }
            setOwner(names[2].isEmpty ? nil : names[2], &actions)
        case (Self.properties, "PropertiesChanged") where sender == owner && message.path == Self.managerPath:
            guard let change = try message.change(of: Self.property), change.interface == Self.manager else { return }
            if let value = change.value { set(Self.isMetered(value), &actions) }
            if change.isInvalidated { readProperty(&actions) }
        default: break
        }
    }

    /// Subscribes to both signals, then asks for the owner of NetworkManager's name, so that no change is missed.
    private mutating func watch(_ actions: inout [Action]) {
        state = .watching
        let owners = Self.rule(
            sender: Self.bus, path: Self.busPath, interface: Self.bus, member: "NameOwnerChanged")
        let changes = Self.rule(
            sender: Self.manager, path: Self.managerPath, interface: Self.properties, member: "PropertiesChanged")
        matches = [call("AddMatch", [owners], &actions), call("AddMatch", [changes], &actions)]
        nameOwner = call("GetNameOwner", [Self.manager], &actions)
    }

    private static func rule(sender: String, path: String, interface: String, member: String) -> String {
        "type='signal',sender='\(sender)',path='\(path)',interface='\(interface)',member='\(member)',arg0='\(manager)'"
    }

    private mutating func setOwner(_ name: String?, _ actions: inout [Action]) {
        guard owner != name else { return }
        owner = name
        metered = nil
        isOutdated = false
        set(nil, &actions)
        if name != nil { readProperty(&actions) }
    }

    /// Asks NetworkManager for the property; at most one call is in progress.
    private mutating func readProperty(_ actions: inout [Action]) {
        isOutdated = metered != nil
        guard let owner, !isOutdated else { return }
        var message = DBusMessage(.call, serial: nextSerial())
        message.flags = DBusMessage.noAutoStart
        message.destination = owner
        message.path = Self.managerPath
        message.interface = Self.properties
        message.member = "Get"
        message.setBody([Self.manager, Self.property])
        metered = message.serial
        actions.append(.send(message.encoded))
    }

    /// Calls a method of the bus and returns the number of the call.
    private mutating func call(_ member: String, _ arguments: [String], _ actions: inout [Action]) -> UInt32 {
        var message = DBusMessage(.call, serial: nextSerial())
        message.destination = Self.bus
        message.path = Self.busPath
        message.interface = Self.bus
        message.member = member
        message.setBody(arguments)
        actions.append(.send(message.encoded))
        return message.serial
    }

    private mutating func nextSerial() -> UInt32 {
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        return lastSerial
    }

    /// Returns the meaning of NetworkManager's enumeration `NMMetered`.
    private static func isMetered(_ value: UInt32?) -> Bool? {
        switch value {
        // Yes, and probably yes.
        case 1, 3: true
        // No, and probably no.
        case 2, 4: false
        default: nil
        }
    }
}
