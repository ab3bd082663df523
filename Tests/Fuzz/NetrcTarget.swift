// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Netrc files: all results occur in the input, and the written entries are parsed again unchanged.
func examine(_ input: [UInt8]) {
    let lines = input.count { $0 == 0x0A } + 1
    let file: NetrcFile
    do {
        file = try NetrcFile(input)
    } catch {
        demand((1...lines).contains(error.line), "line \(error.line) of \(lines) is wrong")
        return
    }
    let words = file.entries.flatMap { [$0.machine, $0.login, $0.password, $0.account].compactMap(\.self) }
    let length = words.reduce(0) { $0 + $1.utf8.count }
    demand(length <= input.count, "the words are longer than the file")
    let others = file.entries.dropLast().filter { $0.machine == nil }
    demand(others.isEmpty, "the default entry is not the last one")
    demand((try? NetrcFile(written(file).utf8)) == file, "the written file differs")
}

private func written(_ file: NetrcFile) -> String {
    file.entries.map { entry in
        let start = entry.machine.map { "machine " + quoted($0) } ?? "default"
        let members = [("login", entry.login), ("password", entry.password), ("account", entry.account)]
        return members.reduce(start) { text, member in member.1.map { "\(text) \(member.0) \(quoted($0))" } ?? text }
    }.joined(separator: "\n")
}

private func quoted(_ word: String) -> String {
    var text = "\""
    for scalar in word.unicodeScalars {
        switch scalar {
        case "\"", "\\": text += "\\" + String(scalar)
        case "\n": text += "\\n"
        default: text.unicodeScalars.append(scalar)
        }
    }
    return text + "\""
}
