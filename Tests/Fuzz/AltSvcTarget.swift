// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The field `Alt-Svc`: the members of a list are independent, each alternative follows the rules and can be written
/// again, and a table keeps only the services of the field.
func examine(_ input: [UInt8]) {
    let text = String(decoding: input, as: UTF8.self)
    let field = AlternativeServiceField(text)
    guard text.utf8.count <= 4096 else {
        demand(field == nil, "a field of \(text.utf8.count) bytes is read")
        return
    }
    examineMembers(of: text, field)
    guard let field else { return }
    if case .alternatives(let all) = field {
        for alternative in all { examine(alternative) }
    }
    examineTable(field, text, age: Double(input.count))
}

/// The members, each read alone, are those of the whole field.
private func examineMembers(of text: String, _ field: AlternativeServiceField?) {
    var found: [AlternativeServiceField.Alternative] = []
    var expected: AlternativeServiceField?
    for member in members(of: text) {
        switch AlternativeServiceField(member) {
        case .clear: expected = .clear
        case .alternatives(let alone):
            demand(alone.count == 1, "the member \(member) has \(alone.count) alternatives")
            found += alone
        case nil: break
        }
    }
    if expected == nil, !found.isEmpty { expected = .alternatives(Array(found.prefix(16))) }
    demand(field == expected, "the members, parsed one by one, are \(String(describing: expected))")
}

/// Splits a list at the commas outside of quotes.
private func members(of text: String) -> [String] {
    var members: [[UInt8]] = [[]]
    var (isQuoted, isEscaped) = (false, false)
    for byte in text.utf8 {
        if byte == UInt8(ascii: ","), !isQuoted {
            members.append([])
            continue
        }
        members[members.count - 1].append(byte)
        if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
        isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
    }
    return members.map { String(decoding: $0, as: UTF8.self) }
}

private func examine(_ alternative: AlternativeServiceField.Alternative) {
    demand(alternative.port > 0, "the port is 0")
    demand(0...31_536_000 ~= alternative.maxAge, "the lifetime is \(alternative.maxAge)")
    demand(1...255 ~= alternative.protocolID.utf8.count, "the protocol has \(alternative.protocolID.utf8.count) bytes")
    var host = ""
    if let name = alternative.host {
        let isNormal = HostName.key(name) == name || HostName.key(name).map { $0 + "." } == name
        demand(isNormal, "the host \(name) is not in normal form")
        host = name.contains(":") ? "[\(name)]" : name
    }
    let unescaped = ByteSet.letters.union(.digits).union(ByteSet("!#$&'*+-.^_`|~"))
    let written =
        "\(alternative.protocolID.percentEncoded(keeping: unescaped))=\"\(host):\(alternative.port)\""
        + "; ma=\(alternative.maxAge)\(alternative.isPersistent ? "; persist=1" : "")"
    demand(AlternativeServiceField(written) == .alternatives([alternative]), "\(written) is read differently")
}

private func examineTable(_ field: AlternativeServiceField, _ text: String, age: Double) {
    let now = Date(timeIntervalSince1970: 1_767_225_600)
    guard let origin = AlternativeServiceTable.Origin(host: "a.test", port: 443, isSecure: true) else {
        demand(false, "an https origin is refused")
        return
    }
    var table = AlternativeServiceTable()
    table.receive(field, text, from: origin, age: age, at: now)
    let services = table.services(of: origin, at: now)
    var lasting: [AlternativeServiceField.Alternative] = []
    if case .alternatives(let all) = field { lasting = all.filter { Double($0.maxAge) > age } }
    demand(services.map(\.protocolID) == lasting.map(\.protocolID), "\(services) are kept")
    demand(services.allSatisfy { !$0.description.utf8.contains(where: \.isControl) }, "a description has controls")
    demand(table.isRepeated(text, of: origin, at: now) == !services.isEmpty, "a repeated field is not recognised")
    table.forgetNetworkSpecific()
    demand(table.services(of: origin, at: now) == services.filter(\.isPersistent), "other services are forgotten")
    demand(!table.isRepeated(text, of: origin, at: now), "a field after a change of the network has no effect")
}
