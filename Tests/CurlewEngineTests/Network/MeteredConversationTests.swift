// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite("Conversation with NetworkManager", .timeLimit(.minutes(5)))
struct MeteredConversationTests {
    private static let messages = BusMessages()

    enum Input: String, Sendable, CaseIterable {
        case start, accepted, rejected, helloReply, helloFailure, matchReply, matchFailure, ownerReply, ownerFailure
        case value, valueFailure, otherReply, ownerChanged, ownerGone, changed, invalidated, forgedChange, forgedOwner
        case forgedValue, call, unknownKind, malformed, end

        /// The bytes from the bus; nil for the start and the end.
        var bytes: [UInt8]? {
            switch self {
            case .start, .end: nil
            case .accepted: BusMessages.accepted
            case .rejected: Array("REJECTED EXTERNAL\r\n".utf8)
            case .helloReply: messages.reply(1, [":1.9"])
            case .helloFailure: messages.failure(1)
            case .matchReply: messages.reply(2)
            case .matchFailure: messages.failure(3)
            case .ownerReply: messages.reply(4, [BusMessages.owner])
            case .ownerFailure: messages.failure(4)
            case .value: messages.value(5, 1)
            case .valueFailure: messages.failure(5)
            case .otherReply: messages.reply(99)
            case .ownerChanged: messages.ownerChanged(from: "", to: ":1.7")
            case .ownerGone: messages.ownerChanged(from: BusMessages.owner, to: "")
            case .changed: messages.propertyChanged(2)
            case .invalidated: messages.propertyChanged(nil)
            case .forgedChange: messages.propertyChanged(2, sender: ":1.6")
            case .forgedOwner: messages.ownerChanged(from: BusMessages.owner, to: ":1.6", sender: ":1.6")
            case .forgedValue: messages.value(5, 2, from: ":1.6")
            case .call: DBusWriter.message(1, [.path("/"), .member("Ping"), .sender(":1.6")])
            case .unknownKind: DBusWriter.message(9, [.sender(":1.6")])
            case .malformed: [UInt8](repeating: UInt8(ascii: "x"), count: 16)
            }
        }

        func apply(to conversation: inout MeteredConversation) -> [MeteredConversation.Action] {
            if let bytes { return conversation.receive(bytes) }
            return self == .start ? conversation.start() : conversation.end()
        }
    }

    /// A state, the inputs that lead to it, and the actions of each further input; the other inputs have no action.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let inputs: [Input]
        let state: MeteredConversation.State
        let actions: [Input: [String]]

        var testDescription: String { name }
    }

    static let rows: [Row] = {
        let greeting: [Input] = [.start, .accepted]
        let watching = greeting + [.helloReply]
        let close = ["close"]
        let unknownAndClose = ["metered nil", "close"]
        let invalid: [Input: [String]] = [.accepted: close, .rejected: close, .malformed: close, .end: close]
        func merged(_ actions: [Input: [String]]) -> [Input: [String]] { invalid.merging(actions) { $1 } }
        return [
            Row(name: "idle", inputs: [], state: .idle, actions: [.start: ["AUTH"], .end: close]),
            Row(
                name: "authenticating", inputs: [.start], state: .authenticating,
                actions: [.accepted: ["BEGIN", "Hello"], .rejected: close, .end: close]),
            Row(
                name: "greeting", inputs: greeting, state: .greeting,
                actions: merged([.helloReply: ["AddMatch", "AddMatch", "GetNameOwner"], .helloFailure: close])),
            Row(
                name: "watching, owner asked for", inputs: watching, state: .watching,
                actions: merged([.ownerReply: ["Get"], .ownerChanged: ["Get"], .matchFailure: close])),
            Row(
                name: "watching without NetworkManager", inputs: watching + [.ownerFailure], state: .watching,
                actions: merged([.ownerChanged: ["Get"], .matchFailure: close])),
            Row(
                name: "watching, value asked for", inputs: watching + [.ownerReply], state: .watching,
                actions: merged([
                    .value: ["metered true"], .changed: ["metered false"], .ownerChanged: ["Get"], .matchFailure: close,
                ])),
            Row(
                name: "watching with a value", inputs: watching + [.ownerReply, .value], state: .watching,
                actions: [
                    .changed: ["metered false"], .invalidated: ["Get"], .ownerChanged: ["metered nil", "Get"],
                    .ownerGone: ["metered nil"], .matchFailure: unknownAndClose, .accepted: unknownAndClose,
                    .rejected: unknownAndClose, .malformed: unknownAndClose, .end: unknownAndClose,
                ]),
            Row(name: "closed", inputs: watching + [.end], state: .closed, actions: [:]),
            Row(name: "closed at once", inputs: [.end], state: .closed, actions: [:]),
        ]
    }()

    /// The first state of a monitor waits for the value only as long as a reply is expected.
    @Test func valueIsPendingUntilTheReplies() {
        let watching: [Input] = [.start, .accepted, .helloReply]
        let rows: [(inputs: [Input], isPending: Bool)] = [
            ([], false), ([.start], true), ([.start, .accepted], true), (watching, true),
            (watching + [.ownerFailure], false), (watching + [.ownerReply], true),
            (watching + [.ownerReply, .value], false), (watching + [.ownerReply, .valueFailure], false),
            (watching + [.end], false),
        ]
        for row in rows {
            var conversation = MeteredConversation(userID: 0)
            for input in row.inputs { _ = input.apply(to: &conversation) }
            #expect(conversation.isPending == row.isPending, "\(row.inputs)")
        }
    }

    /// Returns short descriptions of actions.
    private static func describe(_ actions: [MeteredConversation.Action]) throws -> [String] {
        try actions.map { action in
            switch action {
            case .metered(let value): return "metered " + (value.map { "\($0)" } ?? "nil")
            case .close: return "close"
            case .send(let bytes) where bytes[0] == 0: return "AUTH"
            case .send(let bytes) where bytes == Array("BEGIN\r\n".utf8): return "BEGIN"
            case .send(let bytes): return try DBusMessage(bytes[...]).member ?? ""
            }
        }
    }

    private static func call(_ action: MeteredConversation.Action?) throws -> DBusMessage {
        guard case .send(let bytes) = action else { throw DBusMessage.Flaw.malformed }
        return try DBusMessage(bytes[...])
    }

    private func conversation(_ inputs: [Input]) -> MeteredConversation {
        var conversation = MeteredConversation(userID: 0)
        for input in inputs { _ = input.apply(to: &conversation) }
        return conversation
    }

    private static let watching: [Input] = [.start, .accepted, .helloReply, .ownerReply]

    @Test(arguments: rows)
    func everyInputInEveryStateFollowsTheTable(row: Row) throws {
        let start = conversation(row.inputs)
        #expect(start.state == row.state)
        for input in Input.allCases {
            var conversation = start
            let actions = try Self.describe(input.apply(to: &conversation))
            #expect(actions == row.actions[input] ?? [], "\(input)")
            if actions.last == "close" { #expect(conversation.state == .closed, "\(input)") }
            let values = actions.filter { $0.hasPrefix("metered") }
            let value = conversation.isMetered.map { "metered \($0)" } ?? "metered nil"
            #expect(values.isEmpty ? conversation.isMetered == start.isMetered : values == [value], "\(input)")
        }
    }

    // MARK: Calls

    @Test(arguments: [(0, "30"), (1000, "31303030"), (UInt32.max, "34323934393637323935")])
    func userIDIsSentInHexadecimalDigits(userID: UInt32, expected: String) {
        var conversation = MeteredConversation(userID: userID)
        #expect(conversation.start() == [.send([0] + Array("AUTH EXTERNAL \(expected)\r\n".utf8))])
    }

    @Test func callsFollowTheSpecification() throws {
        var conversation = conversation([.start])
        let greeting = conversation.receive(BusMessages.accepted)
        #expect(greeting.first == .send(Array("BEGIN\r\n".utf8)))
        let hello = try Self.call(greeting.last)
        #expect(hello.member == "Hello" && hello.serial == 1 && hello.destination == BusMessages.bus)
        #expect(hello.path == "/org/freedesktop/DBus" && hello.interface == BusMessages.bus && hello.body.isEmpty)

        let calls = try conversation.receive(Self.messages.reply(1, [":1.9"])).map { try Self.call($0) }
        #expect(calls.map(\.serial) == [2, 3, 4])
        #expect(calls.allSatisfy { $0.destination == BusMessages.bus && $0.interface == BusMessages.bus })
        let manager = "org.freedesktop.NetworkManager"
        #expect(
            try calls.map { try $0.strings(1)?.first } == [
                "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                    + "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='\(manager)'",
                "type='signal',sender='\(manager)',path='/org/freedesktop/NetworkManager',"
                    + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(manager)'",
                manager,
            ])

        let get = try Self.call(conversation.receive(Self.messages.reply(4, [BusMessages.owner])).first)
        #expect(get.member == "Get" && get.interface == "org.freedesktop.DBus.Properties" && get.serial == 5)
        #expect(get.destination == BusMessages.owner && get.path == "/org/freedesktop/NetworkManager")
        #expect(get.flags == 2, "the call must not start NetworkManager")
        #expect(try get.strings(2) == [manager, "Metered"])
    }

    // MARK: Values

    @Test(
        arguments: [(0, nil), (1, true), (2, false), (3, true), (4, false), (5, nil), (.max, nil)] as [(UInt32, Bool?)])
    func valuesOfNetworkManagerAreTranslated(value: UInt32, expected: Bool?) {
        for isBigEndian in [false, true] {
            let messages = BusMessages(isBigEndian: isBigEndian)
            var reading = conversation(Self.watching)
            _ = reading.receive(messages.value(5, value))
            #expect(reading.isMetered == expected)
            var hearing = conversation(Self.watching)
            _ = hearing.receive(messages.propertyChanged(value))
            #expect(hearing.isMetered == expected)
        }
    }

    @Test func equalValueIsNoChange() {
        var conversation = conversation(Self.watching + [.value])
        #expect(conversation.receive(Self.messages.propertyChanged(3)).isEmpty)
        #expect(conversation.receive(Self.messages.propertyChanged(4)) == [.metered(false)])
        #expect(conversation.receive(Self.messages.propertyChanged(0)) == [.metered(nil)])
    }

    @Test func valueOfAnotherTypeIsUnknown() {
        var conversation = conversation(Self.watching)
        let fields: [DBusWriter.Field] = [.replySerial(5), .sender(BusMessages.owner), .signature("v")]
        let text = DBusWriter.message(2, fields) {
            $0.add(signature: "s")
            $0.add("yes")
        }
        #expect(conversation.receive(text).isEmpty)
        #expect(conversation.state == .watching)
        #expect(conversation.receive(Self.messages.propertyChanged(1)) == [.metered(true)])
    }

    @Test func changeDuringACallIsReadAfterItsReply() throws {
        var conversation = conversation(Self.watching)
        for _ in 0..<3 { #expect(conversation.receive(Self.messages.propertyChanged(nil)).isEmpty) }
        let actions = conversation.receive(Self.messages.value(5, 1))
        #expect(try Self.describe(actions) == ["metered true", "Get"])
        #expect(try Self.call(actions.last).serial == 6)
        #expect(conversation.receive(Self.messages.value(6, 2)) == [.metered(false)])
    }

    // MARK: Restarts

    @Test func restartOfNetworkManagerIsFollowed() throws {
        var conversation = conversation(Self.watching + [.value])
        #expect(conversation.receive(Self.messages.ownerChanged(from: ":1.5", to: "")) == [.metered(nil)])
        #expect(conversation.receive(Self.messages.propertyChanged(1)).isEmpty, "its sender is no longer the owner")
        let get = try Self.call(conversation.receive(Self.messages.ownerChanged(from: "", to: ":1.8")).first)
        #expect(get.destination == ":1.8" && get.serial == 6)
        #expect(conversation.receive(Self.messages.value(6, 2, from: ":1.5")).isEmpty)
        #expect(conversation.receive(Self.messages.value(6, 2, from: ":1.8")) == [.metered(false)])
        #expect(conversation.receive(Self.messages.propertyChanged(1, sender: ":1.8")) == [.metered(true)])
    }

    @Test func replyOfAnEarlierOwnerIsIgnored() {
        var conversation = conversation(Self.watching)
        _ = conversation.receive(Self.messages.ownerChanged(from: ":1.5", to: ":1.8"))
        #expect(conversation.receive(Self.messages.value(5, 1)).isEmpty)
        #expect(conversation.receive(Self.messages.failure(5)).isEmpty)
        #expect(conversation.receive(Self.messages.value(6, 1, from: ":1.8")) == [.metered(true)])
    }

    @Test func ownersOfOtherNamesAreIgnored() {
        var conversation = conversation(Self.watching + [.value])
        let other = Self.messages.ownerChanged(from: "", to: ":1.8", name: "org.freedesktop.NetworkManager2")
        #expect(conversation.receive(other).isEmpty)
    }

    // MARK: Forged messages

    @Test func forgedMessagesHaveNoEffect() {
        let messages = Self.messages
        let forged: [[UInt8]] = [
            messages.propertyChanged(2, sender: ":1.6"),
            messages.propertyChanged(2, sender: "org.freedesktop.NetworkManager"),
            messages.propertyChanged(2, sender: BusMessages.bus),
            messages.propertyChanged(2, path: "/org/freedesktop/NetworkManager/x"),
            messages.propertyChanged(2, interface: "org.example"),
            messages.propertyChanged(nil, sender: ":1.6"),
            messages.ownerChanged(from: ":1.5", to: ":1.6", sender: ":1.6"),
            messages.ownerChanged(from: ":1.5", to: "", sender: ":1.5"),
            DBusWriter.message(4, [.path("/"), .interface("org.freedesktop.DBus"), .member("NameOwnerChanged")]),
        ]
        for inputs in [Self.watching + [.value], [.start, .accepted, .helloReply]] {
            for bytes in forged {
                var conversation = conversation(inputs)
                let value = conversation.isMetered
                #expect(conversation.receive(bytes).isEmpty)
                #expect(conversation.isMetered == value && conversation.state == .watching)
            }
        }
    }

    @Test func forgedRepliesHaveNoEffect() {
        for bytes in [
            Self.messages.value(5, 2, from: ":1.6"), Self.messages.value(5, 2, from: BusMessages.bus),
            Self.messages.failure(5, from: ":1.6"),
        ] {
            var conversation = conversation(Self.watching)
            #expect(conversation.receive(bytes).isEmpty)
            #expect(conversation.receive(Self.messages.value(5, 1)) == [.metered(true)])
        }
        var early = conversation([.start, .accepted])
        #expect(early.receive(Self.messages.reply(1, [":1.9"], from: ":1.6")).isEmpty && early.state == .greeting)
        var later = conversation([.start, .accepted, .helloReply])
        for forged in [Self.messages.reply(4, [":1.6"], from: ":1.6"), Self.messages.failure(2, from: ":1.6")] {
            #expect(later.receive(forged).isEmpty && later.state == .watching)
        }
    }

    /// The bus checks the header of a message, not the types in its body.
    @Test func bodiesOfForgedMessagesAreNotRead() {
        let fields: [DBusWriter.Field] = [
            .path("/org/freedesktop/NetworkManager"), .interface("org.freedesktop.DBus.Properties"),
            .member("PropertiesChanged"), .signature("sa{sv}as"),
        ]
        for (sender, state) in [(":1.6", MeteredConversation.State.watching), (BusMessages.owner, .closed)] {
            var conversation = conversation(Self.watching)
            _ = conversation.receive(DBusWriter.message(4, fields + [.sender(sender)]) { $0.add(UInt32.max) })
            #expect(conversation.state == state)
        }
    }

    // MARK: Bytes

    @Test(arguments: [false, true])
    func conversationWorksByteByByte(isBigEndian: Bool) throws {
        let messages = BusMessages(isBigEndian: isBigEndian)
        let parts = messages.conversation(metered: 1) + [messages.propertyChanged(4)]
        let expected = [
            "BEGIN", "Hello", "AddMatch", "AddMatch", "GetNameOwner", "Get", "metered true", "metered false",
        ]
        for size in [1, 2, 7, 100, 10_000] {
            var conversation = conversation([.start])
            var rest = parts.joined()[...]
            var actions: [MeteredConversation.Action] = []
            while !rest.isEmpty {
                actions += conversation.receive(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(try Self.describe(actions) == expected, "\(size)")
        }
    }

    @Test func longLineEndsTheConversation() {
        var accepted = conversation([.start])
        let line = Array("OK ".utf8) + [UInt8](repeating: UInt8(ascii: "0"), count: 1019)
        #expect(accepted.receive(line + [0x0D, 0x0A]).count == 2)
        var refused = conversation([.start])
        #expect(refused.receive(line + [0x30]).isEmpty)
        #expect(refused.receive([0x30]) == [.close])
        for line in ["OK\r\n", "DATA\r\n", "ERROR\r\n", "ok 00\r\n", "OK 00\n", "\r\n"] {
            var conversation = conversation([.start])
            #expect(conversation.receive(Array(line.utf8)) == [.close], "\(line)")
        }
    }

    @Test func messageThatIsTooLargeEndsTheConversation() {
        var conversation = conversation(Self.watching)
        var start = Array(Self.messages.propertyChanged(1).prefix(16))
        start[6] = 1
        #expect(conversation.receive(start) == [.close])
        #expect(conversation.receive(Self.messages.propertyChanged(1)).isEmpty)
    }

    @Test func randomBytesEndTheConversationAtWorst() {
        var chance = SeededGenerator(13)
        for round in 0..<3000 {
            let messages = BusMessages(isBigEndian: round % 2 == 1)
            var bytes = Array(messages.conversation(metered: 1).joined()) + messages.propertyChanged(2)
            for _ in 0..<(1 + chance.below(3)) {
                bytes[Int(chance.below(UInt64(bytes.count)))] = UInt8(chance.below(256))
            }
            var conversation = conversation([.start])
            var actions: [MeteredConversation.Action] = []
            while !bytes.isEmpty {
                let count = 1 + Int(chance.below(300))
                actions += conversation.receive(bytes.prefix(count))
                bytes.removeFirst(min(count, bytes.count))
            }
            actions += conversation.end()
            #expect(actions.filter { $0 == .close }.count == 1 && actions.last == .close)
            #expect(conversation.isMetered == nil)
        }
    }
}
