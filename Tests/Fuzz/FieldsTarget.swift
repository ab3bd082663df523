// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Response heads: the status line, the field lines, and the values parsed from them.
func examine(_ input: [UInt8]) {
    let fields = HeaderFields(parsing: input)
    for field in fields { examine(field, in: input, fields) }
    examineRoundTrip(fields)
    demand(!fields.description.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" }, "a description has controls")
    examineHead(input)
}

private func examine(_ field: HeaderFields.Field, in input: [UInt8], _ fields: HeaderFields) {
    let name = field.name.rawValue
    let isName = !name.isEmpty && !name.utf8.contains { $0 == 0x3A || $0 == 0x0A }
    demand(isName, "a name is \(name.debugDescription)")
    demand(!field.value.utf8.contains(0x0A), "a value has a line break: \(field.value.debugDescription)")
    let ends = [field.value.utf8.first, field.value.utf8.last, name.utf8.first, name.utf8.last]
    demand(!ends.contains { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }, "\(field) is not trimmed")
    if field.name.isValid {
        let single = HeaderFields.value(of: field.name, in: input)
        demand(single == fields[field.name], "\(name) alone is \(single.debugDescription)")
    }
    demand(!input.contains(0) ? !field.value.utf8.contains(0) : true, "a value has a NUL that the input does not have")
}

/// Serialized fields parse to equal fields.
private func examineRoundTrip(_ fields: HeaderFields) {
    let text = fields.map { "\($0.name.rawValue): \($0.value)\r\n" }.joined() + "\r\n"
    let again = HeaderFields(parsing: Array(text.utf8))
    demand(again == fields, "read again: \(again.map { ($0.name.rawValue, $0.value) })")
}

private func examineHead(_ input: [UInt8]) {
    let check = accepted(input)
    guard let line = StatusLine(input) else {
        demand(ResponseHead(rawBlock: input) == nil, "a head without a status line")
        demand(check == nil, "the engine accepted a head that cannot be parsed")
        return
    }
    let head = ResponseHead(rawBlock: input)
    demand((100...999).contains(line.status.code), "the status is \(line.status.code)")
    demand(check.map { $0.status == line.status.code } ?? true, "the two parsers read different statuses")
    if let check, let length = head?.contentLength { demand(check.length == length, "two lengths of one body") }
    demand(line.end <= input.count && !input[line.reason].contains(0x0A), "the phrase goes beyond its line")
    demand(head?.fields == HeaderFields(parsing: input, from: line.end), "the fields of the head differ")
    demand((head?.contentLength ?? 0) >= 0, "a length below zero")
}
