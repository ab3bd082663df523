// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// D-Bus: each message is read or refused, a message that is read can be written, and a conversation has the same
/// actions for the same bytes in other pieces.
func examine(_ input: [UInt8]) {
    if let message = try? DBusMessage(input[...]) { examine(message, input.count) }
    examineConversation(input)
}

private func examine(_ message: DBusMessage, _ size: Int) {
    demand(size <= DBusMessage.maximumSize && message.serial != 0, "the message has \(size) bytes")
    _ = try? message.variantNumber()
    let strings = try? message.strings(message.signature.utf8.count)
    if let change = try? message.change(of: "Metered") {
        demand(message.signature == "sa{sv}as" && change.interface.utf8.count < size, "the change is made up")
    }
    guard message.kind != nil else { return }
    var written = message
    written.isBigEndian = false
    if let strings = strings ?? nil { written.setBody(strings) }
    let read = try? DBusMessage(written.encoded[...])
    demand(read == written, "\(written) is read as \(String(describing: read))")
    demand(written.encoded.count <= size, "the message grows")
}

private func examineConversation(_ input: [UInt8]) {
    var start = MeteredConversation(userID: 1000)
    _ = start.start()
    demand(start.receive("OK 0123456789abcdef\r\n".utf8).count == 2, "the authentication fails")
    demand(start.receive(reply(1, from: MeteredConversation.bus)).count == 3, "there is no call after the first reply")
    demand(start.receive(reply(4, ":1.5", from: MeteredConversation.bus)).count == 1, "the property is not read")
    var (whole, single) = (start, start)
    let actions = whole.receive(input)
    var others: [MeteredConversation.Action] = []
    for byte in input { others += single.receive([byte]) }
    demand(actions == others, "single bytes lead to \(others) instead of \(actions)")
    demand(whole.isMetered == single.isMetered && whole.state == single.state, "the states differ")
    demand(actions.contains(.close) == (whole.state == .closed), "the state is \(whole.state)")
    let end = whole.end()
    demand(whole.state == .closed && whole.isMetered == nil, "the conversation does not end")
    demand((actions + end).filter { $0 == .close }.count == 1, "the socket is closed twice, or not at all")
}

private func reply(_ serial: UInt32, _ text: String? = nil, from sender: String) -> [UInt8] {
    var message = DBusMessage(.reply, serial: serial)
    message.replySerial = serial
    message.sender = sender
    message.setBody(text.map { [$0] } ?? [])
    return message.encoded
}
