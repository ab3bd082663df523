// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// DNS messages: each response is read or refused, and a response that is read has valid names and addresses.
///
/// The first byte selects the type in the question, the rest is the response. The name is the one in the response.
func examine(_ input: [UInt8]) {
    guard let first = input.first else { return }
    let type = DNSMessage.RecordType.allCases[Int(first) % DNSMessage.RecordType.allCases.count]
    let bytes = Array(input[1...])
    let name = nameInQuestion(bytes) ?? "a.test"
    examineQuestion(name, type)
    let read = response(bytes, name, type)
    demand(read == response(bytes, name, type), "reading it twice makes a difference")
    guard case .success(let message) = read else { return }
    demand(response(bytes.dropLast(), name, type) == .failure(.truncated), "the last byte is not needed")
    demand(response(bytes + [0], name, type) == .failure(.malformed), "one more byte is accepted")
    demand(message.code <= 0xFFF && message.records.count <= DNSMessage.maximumRecords, "a number is too large")
    for record in message.records {
        demand(record.lifetime <= Int32.max, "the lifetime is \(record.lifetime)")
        demandName(record.name)
        switch record.data {
        case .address(let bytes): demandAddress(bytes)
        case .alias(let target): demandName(target)
        case .service(nil): continue
        case .service(let binding?): demandBinding(binding)
        }
    }
    for name in Set(message.records.map(\.name) + [name]) { examineLookUp(message, name) }
}

private func response(
    _ bytes: [UInt8], _ name: String, _ type: DNSMessage.RecordType
) -> Result<DNSMessage, DNSMessage.Flaw> {
    Result { () throws(DNSMessage.Flaw) in try DNSMessage(response: bytes, to: name, type) }
}

/// Returns the name of the question in a response, if it is neither compressed nor cut off.
private func nameInQuestion(_ bytes: [UInt8]) -> String? {
    var rest = bytes.dropFirst(12)
    var labels: [String] = []
    while let size = rest.popFirst(), size < 64 {
        if size == 0 { return labels.joined(separator: ".") }
        labels.append(String(decoding: rest.prefix(Int(size)), as: UTF8.self))
        rest = rest.dropFirst(Int(size))
    }
    return nil
}

/// Checks a question by reading it as a response without records.
private func examineQuestion(_ name: String, _ type: DNSMessage.RecordType) {
    guard var bytes = DNSMessage.question(name, type) else { return }
    demand(bytes.count == name.utf8.count + 18 && name.utf8.count <= 253, "the question has \(bytes.count) bytes")
    bytes[2] |= 0x80
    let isHost = ByteSet.unreserved.containsAll(of: name)
    let read = response(bytes, name, type)
    guard case .success(let message) = read else {
        demand(!isHost && read == .failure(.otherQuestion), "the question of \(name) is not read")
        return
    }
    demand(isHost && message.records.isEmpty && message.code == 0, "the response is not empty")
}

private func examineLookUp(_ message: DNSMessage, _ name: String) {
    let addresses = message.addresses(of: name)
    let again = message.addresses(of: name.uppercased())
    // The upper case of other letters is another name.
    if name.utf8.allSatisfy({ $0 < 0x80 }) {
        demand(addresses?.addresses == again?.addresses && addresses?.lifetime == again?.lifetime, "the case matters")
    }
    if let addresses {
        demand(!addresses.addresses.isEmpty, "the list of addresses is empty")
        addresses.addresses.forEach(demandAddress)
        demand(message.records.contains { $0.lifetime == addresses.lifetime }, "the lifetime is made up")
    }
    guard let found = message.services(of: name) else { return }
    demand(message.records.contains { $0.lifetime == found.lifetime }, "the lifetime is made up")
    for (index, service) in found.services.enumerated() {
        demand(index == 0 || found.services[index - 1].priority <= service.priority, "the order is wrong")
        demand(service.isUsable && service.isAlias == found.services[0].isAlias, "a service does not count")
    }
}

private func demandName(_ name: String) {
    demand((1...253).contains(name.utf8.count), "a name has \(name.utf8.count) bytes")
    demand(ByteSet.unreserved.containsAll(of: name) && name == name.lowercased(), "the name is \(name)")
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    demand(name == "." || labels.allSatisfy { (1...63).contains($0.utf8.count) }, "\(name) has a bad label")
}

private func demandAddress(_ bytes: [UInt8]) {
    demand(HostName.address(bytes) != nil, "an address has \(bytes.count) bytes")
}

private func demandBinding(_ binding: ServiceBinding) {
    demandName(binding.target)
    binding.addresses.forEach(demandAddress)
    for identifier in binding.protocols {
        demand((1...255).contains(identifier.utf8.count), "an identifier has \(identifier.utf8.count) bytes")
        demand(identifier.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "the identifier \(identifier) is not visible")
    }
    guard binding.isUsable else { return }
    demand(binding.port != 0, "the port is 0")
    let isHost = HostName.key(binding.target) == binding.target && !HostName.isAddress(binding.target)
    demand(isHost || binding.isAlias && binding.target == ".", "\(binding.target) is not a host")
}
